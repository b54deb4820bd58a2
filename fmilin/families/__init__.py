"""Many operating points: sweeps, grids, paths, processes and clusters.

Enters: a source, values of what varies, a request for each point.
Leaves: :class:`~fmilin.LinearFamily`, with the reason at every point that failed.
Does not know: files of families, pictures.
"""
