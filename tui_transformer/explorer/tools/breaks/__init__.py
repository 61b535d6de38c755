"""Breaking the model on purpose: switches, each with the difference that it makes."""
