"""What is kept of compiled kernels on disk, told without the compiler, which takes a second to import.

`folders` says where files are and whose are believed, `files` how one is written, read and pruned;
`conditions` tells all that kernels were compiled under, and `notes` which of them a part of the package was
seen to need.
"""
