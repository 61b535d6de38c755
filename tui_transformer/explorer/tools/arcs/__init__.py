"""Arcs: attention, links and rollout as lines between words."""
