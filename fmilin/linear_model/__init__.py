"""The result: linear models and descriptor systems, data and arithmetic."""
