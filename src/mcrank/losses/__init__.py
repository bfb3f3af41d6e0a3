"""Losses: scores and grades become gradients (and curvatures)."""
