"""Explanations and the tour, as text files in one folder a language."""
