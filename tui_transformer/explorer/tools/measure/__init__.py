"""What ablations and patches are measured by."""
