"""Screens over the main one: settings, vocabulary, help, export."""
