"""A report of the protections for FMUs on this system, from a host that runs without an FMU."""

from __future__ import annotations

import platform

from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.process import HostProcess
from fmilin.fmi.client.restrictions import Limits
from fmilin.fmi.sandbox_protections import SandboxReport, list_guarantees, read_sandbox_report

_SMALL_ARENA_BYTES = 1 << 16


def sandbox_report() -> SandboxReport:
    """Return what the code of an FMU cannot do here; ``missing`` names what does not hold.

    Examples
    --------
    >>> import fmilin as fl
    >>> fl.sandbox_report()["environment"].holds
    True
    """
    limits = Limits()
    host = HostProcess(
        Arena(_SMALL_ARENA_BYTES),
        "none",
        lambda *_: None,
        options=limits.to_options(),
        environment=limits.to_environment(),
    )
    try:
        report = read_sandbox_report(host.sandbox_report)
    finally:
        host.kill()
    return SandboxReport(f"{platform.system()} {platform.release()}", list_guarantees(report))
