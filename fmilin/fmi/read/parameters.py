"""Values of an FMU's parameters, as constraints and results need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fmilin.fmi.read.description import LargeSequence
from fmilin.fmi.read.session import Session

__all__ = ["ParameterValues", "changed_parameters"]


class ParameterValues(Mapping[str, float]):
    """Values of parameters and constants, read from the instance when asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getitem__(self, name: str) -> float:
        scalar = self._session.layout.find(name)
        if scalar is None or not scalar.variable.is_parameter:
            raise KeyError(name)
        return self._session.number(scalar)

    def __iter__(self) -> Iterator[str]:
        layout = self._session.layout
        if isinstance(layout.description.variables, LargeSequence):
            return iter(())  # reading all of them would take long, and every name is known from elsewhere
        return (s.name for v in layout.description.variables if v.is_parameter for s in layout.scalars(v))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True  # without counting them

    def __contains__(self, name: object) -> bool:
        scalar = self._session.layout.find(name) if isinstance(name, str) else None
        return scalar is not None and scalar.variable.is_parameter


def changed_parameters(session: Session) -> dict[str, float]:
    """Return the scalar parameters that were set, without the start values of states and inputs."""
    return {
        s.variable.name: float(s.values[0])
        for s in session.settings
        if s.variable.is_parameter and not s.variable.dimensions
    }
