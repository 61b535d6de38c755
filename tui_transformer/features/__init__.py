"""Dictionaries of features, read from files: sparse autoencoders, transcoders and cross-layer transcoders."""
