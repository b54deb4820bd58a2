"""The interface that every source of models implements.

Takes: time, states, inputs.
Returns: `Model`, `Evaluation`, `OperatingPoint`.
Does not depend on: where a model comes from, and what it is used for.
"""
