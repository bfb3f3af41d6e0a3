"""The tables and figures of the two papers, made again: what `reproduce` makes."""
