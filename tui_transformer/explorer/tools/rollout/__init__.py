"""Attention rollout: what reached which token."""
