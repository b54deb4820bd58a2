"""One door for every source: files, Python objects, adapters that register themselves, models wrapped as FMUs.

Enters: a path or a name, settings, constraints.
Leaves: a :class:`~fmilin.Model`; checks of what an adapter promises.
Does not know: what will be asked of the model, and no adapter by name.
"""
