"""The explorer without a screen: a key or a command a line, and a sentence for each."""
