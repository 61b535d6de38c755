"""Comparison with another trace."""
