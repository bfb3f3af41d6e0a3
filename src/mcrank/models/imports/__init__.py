"""Models of other libraries: one file for each source, which makes a scorer and a head of what it reads."""
