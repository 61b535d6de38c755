"""Sizes, seed, masks and device of the model."""
