"""Views: matrices and charts as plain data, made once for the screen, files and commands."""
