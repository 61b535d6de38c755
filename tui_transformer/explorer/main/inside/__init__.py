"""Looking inside a cell: its operation drawn large, with its operands, which can be followed."""
