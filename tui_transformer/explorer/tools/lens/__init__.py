"""Logit lens: which word each layer spells."""
