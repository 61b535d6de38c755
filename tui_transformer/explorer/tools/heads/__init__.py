"""All heads at once, by layer or by a measure."""
