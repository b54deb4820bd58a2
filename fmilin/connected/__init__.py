"""Systems of models: connections, SSP files, co-simulation, sampled loops.

Enters: models, the wires between them, .ssp archives.
Leaves: one :class:`~fmilin.Model` of the whole.
Does not know: what kind of source a member is.
"""
