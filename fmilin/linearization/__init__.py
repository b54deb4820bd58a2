"""The procedure: a model, a point, independent coordinates, slopes, a linear model."""
