"""The tools themselves, where they are installed, on random rankings of every odd kind."""
