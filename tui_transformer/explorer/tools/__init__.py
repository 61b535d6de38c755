"""Tools that are opened from the main screen, a folder each."""
