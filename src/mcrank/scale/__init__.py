"""Training on several machines: who adds up over a network, and how Dask starts and watches it."""
