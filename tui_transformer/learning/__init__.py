"""Learning: loss, optimisers, schedules, tasks, the training loop, and runs that can be resumed."""
