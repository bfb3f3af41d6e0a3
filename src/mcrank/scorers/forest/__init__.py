"""The forest: flat arrays of trees, their checks, and fast scoring."""
