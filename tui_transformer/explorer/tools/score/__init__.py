"""How likely the text is, token by token."""
