"""Where the states may live, and coordinates on that manifold."""
