"""Choosing options and amounts of data: searches over declared ranges, and learning curves."""
