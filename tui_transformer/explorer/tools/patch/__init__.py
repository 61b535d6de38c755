"""Patching a step from another sentence."""
