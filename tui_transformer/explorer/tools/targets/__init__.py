"""The targets of the loss."""
