"""The explored state, as values: session, position, comparison, history."""
