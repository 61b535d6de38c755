"""Files of arrays that people write, a file a format."""
