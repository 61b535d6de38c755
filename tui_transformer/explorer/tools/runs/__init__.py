"""The parts that screens about training runs share: an example that is looked at, the head that is chosen, the log."""
