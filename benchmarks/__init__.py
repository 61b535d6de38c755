"""Measurements of what the program promises: `python -m benchmarks`."""

import tui_transformer  # noqa: F401 - before NumPy, whose threads it tells not to wait for long
