"""Which engine computes a sweep: this process, others on this machine, or a cluster."""

from __future__ import annotations

from collections.abc import Callable

from fmilin.families.engine import Engine, Here
from fmilin.families.plan import Plan
from fmilin.ground.errors import UsageError
from fmilin.ground.sandbox.isolation import can_isolate
from fmilin.ground.sandbox.limits import Limits
from fmilin.ground.signals import FloatArray
from fmilin.loading.request import is_fmu


def engine_for(
    plan: Plan,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    isolate: bool = True,
    limits: Limits | None = None,
    table: Callable[[int], FloatArray] | None = None,
) -> Engine:
    """Return who computes the points: this process, children (an FMU's too, with ``isolate``) or a Dask cluster.

    ``table`` returns rows of a width for all points, which this process writes to.
    """
    if jobs < 1:
        raise UsageError(f"{jobs} jobs do no work: give --jobs 1 or more.")
    if scheduler is not None:
        from fmilin.families.cluster import Cluster

        return Cluster(plan, scheduler, limits)
    foreign = isinstance(plan.source, str) and is_fmu(plan.source)
    if jobs > 1 or (isolate and foreign and can_isolate()):
        from fmilin.families.processes import Processes

        return Processes(plan, min(jobs, plan.grid.size), limits)
    return Here(plan, table)
