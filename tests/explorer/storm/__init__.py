"""Keys, escape sequences, mouse, paste and resizes at random, to the real program in a terminal of its own."""
