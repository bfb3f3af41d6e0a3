"""Model files: save, load and validate."""
