"""Walks at random through the explorer, and the oracle: same state, same screen."""
