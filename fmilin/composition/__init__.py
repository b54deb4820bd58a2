"""Systems of models: connections, SSP files, co-simulation, sampled loops.

Takes: models, the wires between them, .ssp archives.
Returns: one :class:`~fmilin.Model` of the whole.
Does not depend on: what kind of source a member is.
"""
