"""Everything that works around Textual, each with the version that made it needed."""
