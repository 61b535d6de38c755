"""The strongest links of attention."""
