"""Every source of models behind one function: files, Python objects, adapters that register themselves.

Takes: a path or a name, settings, constraints.
Returns: a `Model`.
Does not depend on: what the model is used for, and any adapter by name.
"""
