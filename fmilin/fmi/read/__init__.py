"""An FMU as a Model."""
