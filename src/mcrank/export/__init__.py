"""Exports: a fitted ranker as a file that somebody else scores with. One file a target."""
