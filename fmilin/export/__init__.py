"""A LinearModel as a file that other tools accept: one module per format, one registry."""
