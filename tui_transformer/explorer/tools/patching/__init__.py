"""Tables of patches: what every position, head or layer brings over from another sentence."""
