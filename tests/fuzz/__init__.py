"""Damaged and odd files for every reader, in child processes with limits of time and memory: `make fuzz`."""
