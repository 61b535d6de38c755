"""The whole on one screen: every step of a layer as a small picture, in the order of the data."""
