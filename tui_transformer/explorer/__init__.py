"""The full-screen explorer."""
