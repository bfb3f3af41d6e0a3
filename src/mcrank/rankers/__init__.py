"""Rankers: a scorer times a loss, with one interface."""
