"""Widgets that know how to draw and nothing about transformers."""
