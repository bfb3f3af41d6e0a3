"""Training loops of rankers that are not boosted trees: rounds, stumps, descent, ascent, line search."""
