"""A symbolic model as an FMU."""
