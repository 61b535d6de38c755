"""Measures: one file each, with its formula and source."""
