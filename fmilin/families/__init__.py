"""Many operating points: sweeps, grids, paths, processes and clusters.

Takes: a source, values of what varies, a request for each point.
Returns: :class:`~fmilin.LinearFamily`, with the reason at every point that failed.
Does not depend on: files of families, pictures.
"""
