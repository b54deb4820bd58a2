"""A page on this machine alone, on which a model is linearized as sliders move.

- Enters: what can be moved, a function that answers with a linear model, one that writes the command line.
- Leaves: a page in a browser, until the terminal ends it.
- Does not know: where the answers come from.
"""
