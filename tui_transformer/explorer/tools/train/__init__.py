"""A training run beside the explorer: the thread that trains, and what is shown of it."""
