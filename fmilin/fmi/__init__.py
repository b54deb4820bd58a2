"""Everything that knows the FMI standard."""
