"""Native descriptions of constrained systems, one file per form of the equations."""
