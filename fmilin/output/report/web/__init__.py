"""A report of a linear model or a family as one HTML file that needs nothing else."""
