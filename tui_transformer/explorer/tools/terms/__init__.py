"""Direct logit attribution: what every head, layer and embedding writes toward a logit."""
