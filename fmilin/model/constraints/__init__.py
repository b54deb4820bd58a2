"""What the states must satisfy: expressions, declared constraints, their file."""
