"""A sentence while it is edited: what it changes, letter by letter, over the main screen and over tools."""
