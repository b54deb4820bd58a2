"""Reference mechanisms of the literature, each at a consistent point when it starts."""
