"""What every input token adds to a chosen number, by gradients."""
