"""The client of the FMU host: shared memory, programs of calls, and the process itself."""
