"""The measure of ablations and patches."""
