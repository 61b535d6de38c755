"""Two sentences: how alike they are, and which tokens bring them together."""
