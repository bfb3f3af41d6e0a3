"""Scorers: what a fitted ranker scores rows with, and heads: how raw outputs become ranking scores."""
