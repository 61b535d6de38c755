"""The screen that writes on: what it shows of a text, its next token and the cache."""
