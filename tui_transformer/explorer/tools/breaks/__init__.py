"""Breaking one thing at a time: what is known of it, how that is written, and the screen."""
