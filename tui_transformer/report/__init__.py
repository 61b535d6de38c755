"""Views as text, JSON, CSV, NPZ and SVG."""
