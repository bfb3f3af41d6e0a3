"""A model as a whole, on data: what matters to it, how it reacts, where it is weak."""
