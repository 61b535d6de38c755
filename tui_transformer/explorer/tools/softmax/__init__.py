"""The naive and the safe softmax of a row, side by side."""
