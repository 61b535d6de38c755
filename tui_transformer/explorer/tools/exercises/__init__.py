"""The course: its exercises in a list, each to be looked at where its numbers are made."""
