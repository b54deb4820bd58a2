"""The report of an FMU host on its sandbox: which protections are active, and why the others are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    r"""What a host reported when its sandbox was applied; names that it does not mention belong to other systems.

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
