"""An FMU for co-simulation as a Model: it brings its own solver, so that it can be stepped."""
