"""Circuits of weights: the matrices of every head, and how heads compose."""
