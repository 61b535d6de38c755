"""The checkpoints of a training run, step by step."""
