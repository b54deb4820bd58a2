"""Many operating points: sweeps over grids, and the families of linear models that they return."""
