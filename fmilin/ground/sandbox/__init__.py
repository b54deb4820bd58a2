"""Foreign code at arm's length: child processes, a watchdog, limits."""
