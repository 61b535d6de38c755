"""Measurements of what the program promises: `python -m benchmarks`."""
