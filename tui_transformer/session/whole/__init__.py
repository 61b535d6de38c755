"""The whole model on one screen, before it is drawn: bands of boxes, their pictures, the norms of layers."""
