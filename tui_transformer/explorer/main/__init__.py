"""The main screen: panes around one position in one session."""
