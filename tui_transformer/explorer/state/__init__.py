"""What is explored, as values: session, position, comparison, history."""
