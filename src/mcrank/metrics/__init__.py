"""Measures: scores and grades become one number per query."""
