"""Opening another model: those of the program, of this computer, recent ones, and any path."""
