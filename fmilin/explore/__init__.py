"""A page on this machine alone, on which a model is linearized as sliders move.

Takes: quantities that can be moved, a function that returns a linear model.
Returns: a page in a browser, until the terminal ends it.
Does not depend on: where the answers come from.
"""
