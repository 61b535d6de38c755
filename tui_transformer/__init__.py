"""See every number inside a transformer, in a terminal."""

__version__ = "0.1.0"
