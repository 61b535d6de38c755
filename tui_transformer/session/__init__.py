"""What is explored, as values: session, position, view, history and edits; no terminal library."""
