"""Predict, then reveal: one question on a step, the right answer to which is worked out from its values."""
