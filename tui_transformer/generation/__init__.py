"""Writing on: the next token, chosen from the model's distribution, again and again."""
