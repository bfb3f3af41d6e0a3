"""Experiments: what `compare` runs, and what it found."""
