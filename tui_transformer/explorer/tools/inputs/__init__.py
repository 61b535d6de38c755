"""Attribution to the input: how much every token adds to a chosen number, by gradients."""
