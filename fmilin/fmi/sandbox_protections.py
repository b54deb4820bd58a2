"""The report of an FMU host on its sandbox: which protections are active, and why the others are not."""

from __future__ import annotations

import logging
from typing import Literal

from fmilin.support.dataclass import dataclass

State = Literal["active", "off", "missing"]
_STATES: dict[str, State] = {"active": "active", "off": "off", "missing": "missing"}


@dataclass(frozen=True, slots=True)
class Protection:
    """One line of the report."""

    name: str  #: "landlock-files"
    state: State  #: "off": an option turned it off; "missing": the system does not offer it
    detail: str = ""  #: by what means, or why not


@dataclass(frozen=True, slots=True)
class HostSandbox:
    r"""The protections that a host reported for its sandbox; names that it does not report belong to other systems.

    Examples
    --------
    >>> report = read_sandbox_report("memory=active: 1000000000\nroot=missing: mount namespace: not permitted\n")
    >>> report.is_active("memory"), report.missing
    (True, ('root',))
    """

    protections: tuple[Protection, ...]

    def is_active(self, name: str) -> bool:
        """Whether a protection holds."""
        return any(p.name == name and p.state == "active" for p in self.protections)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the protections that this system does not offer."""
        return tuple(p.name for p in self.protections if p.state == "missing")


def read_sandbox_report(text: str) -> HostSandbox:
    """Read the lines ``name=state: detail`` of a host.

    Raises
    ------
    ValueError
        For a line of another form: the program is not a host of this version.
    """
    return HostSandbox(tuple(_read_line(line) for line in text.splitlines()))


def _read_line(line: str) -> Protection:
    name, equals, rest = line.partition("=")
    word, _, detail = rest.partition(":")
    state = _STATES.get(word)
    if not name or not equals or state is None:
        raise ValueError(f"A line of the sandbox's report is not of the form 'name=state: detail': {line!r}.")
    return Protection(name, state, detail.strip())


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One thing that the code of an FMU cannot do."""

    name: str  #: "reading"
    sentence: str  #: what it cannot do
    means: str  #: by which that is so; empty where it is not
    needs: str = ""  #: what would be needed

    @property
    def holds(self) -> bool:
        """Whether it holds on this system."""
        return bool(self.means)


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """The guarantees for the code of an FMU on this system; printed, one on each line."""

    system: str
    guarantees: tuple[Guarantee, ...]

    def __getitem__(self, name: str) -> Guarantee:
        """Return a guarantee by its name."""
        return {guarantee.name: guarantee for guarantee in self.guarantees}[name]

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of what does not hold."""
        return tuple(guarantee.name for guarantee in self.guarantees if not guarantee.holds)

    def __str__(self) -> str:
        """Return a line for each guarantee."""
        lines = [f"On {self.system}, the code of an FMU"]
        for guarantee in self.guarantees:
            how = f"yes ({guarantee.means})" if guarantee.holds else f"NOT HELD ({guarantee.needs})"
            lines.append(f"  {guarantee.sentence:<72} {how}")
        return "\n".join(lines)


_GUARANTEES = (
    ("reading", "reads no files of yours", ("root", "landlock-files")),
    ("writing", "writes only to a temporary folder of its own", ("root", "landlock-files")),
    ("network", "opens no connections", ("system-calls", "network")),
    ("memory", "neither traces processes nor reads their memory", ("system-calls", "processes-hidden")),
    ("signals", "signals no processes but its own", ("processes-hidden", "landlock-scope", "system-calls")),
    ("processes", "does not see other processes", ("proc", "landlock-files")),
    ("kernel", "makes no mounts, namespaces, keys or traces, gains no rights", ("system-calls",)),
    ("starting", "starts no programs, and no processes but copies of itself", ("no-new-processes", "job")),
    ("leftovers", "leaves no process behind", ("processes-hidden", "no-new-processes", "job")),
    ("limits", "uses no more memory than its limit", ("memory", "job")),
    ("threads", "has no more than some hundred threads and processes", ("threads", "cgroup")),
)
"""Name, what an FMU cannot do, and the protections each of which sees to that."""


def list_guarantees(host: HostSandbox) -> tuple[Guarantee, ...]:
    """Return what holds for an FMU in a host with these protections."""
    by_name = {protection.name: protection for protection in host.protections}
    guarantees = [
        Guarantee("process", "runs in a process of its own, which ends when a call takes too long", "always"),
        Guarantee("environment", "receives a short list of environment variables", "always"),
    ]
    for name, sentence, protections in _GUARANTEES:
        means = ", ".join(p for p in protections if host.is_active(p))
        lacking = [f"{p}: {by_name[p].detail}" for p in protections if p in by_name and not host.is_active(p)]
        needs = "; ".join(lacking) or "this system offers no protection against it"
        guarantees.append(Guarantee(name, sentence, means, "" if means else needs))
    return tuple(guarantees)


logger = logging.getLogger("fmilin.sandbox")
_ESSENTIAL = {"reading": "files", "network": "the network", "memory": "other processes"}
_WARNED_OF: list[str] = []  # in this process


def warn_of_missing_protections(host: HostSandbox) -> None:
    """Warn once in a process of accesses of an FMU that cannot be prevented and were not allowed."""
    if _WARNED_OF:
        return
    off = {p.name for p in host.protections if p.state == "off"}
    gaps = [
        _ESSENTIAL[g.name] for g in list_guarantees(host) if g.name in _ESSENTIAL and not g.holds and g.name not in off
    ]
    if gaps:
        _WARNED_OF.extend(gaps)
        logger.warning(
            "fmilin: the code of FMUs runs in a process of its own, but this system cannot prevent it from %s. "
            "fl.sandbox_report() lists the restrictions; load only FMUs that you trust.",
            " and from ".join(gaps),
        )
