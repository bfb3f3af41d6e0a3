"""Data: files, tables and arrays become a `Dataset` of features, grades and query offsets."""
