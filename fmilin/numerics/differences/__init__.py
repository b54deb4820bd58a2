"""How a slope is measured: exact products or differences, with error estimates."""
