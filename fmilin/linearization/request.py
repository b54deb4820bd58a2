"""A linearization as the procedure sees it: the options that a user gives, and what only other procedures choose."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fmilin.options import Linearization
from fmilin.options.function_options import merge_options
from fmilin.support.dataclass import dataclass

SEQUENCES = ("independent", "inputs", "outputs", "parameters")
"""Options that are several names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Linearization):
    """The options of a linearization, with one-sided derivatives as differences on that side."""

    seek_steady: bool = True  # whether a moving point is asked for coordinates in which its motion is steady

    @classmethod
    def of(cls, function: str, linearization: Linearization | None, keywords: Mapping[str, object]) -> Request:
        """Return the request that a function is given, as a dataclass or as keywords; see :func:`merge_options`."""
        values = merge_options(function, linearization, keywords)
        return cls(**values) if values else make_default_request()

    def __post_init__(self) -> None:
        Linearization.__post_init__(self)
        for name in SEQUENCES:  # a list may be changed by the caller, and a plan keeps the request
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, tuple(values))
        object.__setattr__(self, "delays", dict(self.delays))
        if self.one_sided is None:
            return
        from fmilin.numerics.differences.differences import Differences

        object.__setattr__(self, "derivatives", Differences(side=self.one_sided))
        object.__setattr__(self, "one_sided", None)


@cache
def make_default_request() -> Request:
    """Return the request without any option, which most calls share."""
    return Request()
