"""The transformer as named steps: operations, programs and traces, on NumPy or CuPy."""
