"""Points at which an FMU's instance is lost: asked once there, and not again."""

from __future__ import annotations

from fmilin.fmi.read.buffers import Buffers
from fmilin.ground.errors import ModelError

REMEMBERED = 1000  # points at most; the oldest are forgotten

_Key = tuple[str, tuple[int, ...], bytes]


class Refusals:
    """Errors that cost an instance, by the point and by what was asked for there.

    An instance is not asked again after an error (FMI 2.0.4 section 2.1.3). A fresh one takes milliseconds, and its
    answer would be the same, as all are in the same mode.
    """

    def __init__(self) -> None:
        self._errors: dict[_Key, str] = {}

    def __bool__(self) -> bool:
        return bool(self._errors)

    def repeat(self, buffers: Buffers, wanted: str) -> None:
        """Raise the error that was met when the same was asked for before."""
        if (text := self._errors.get(_key(buffers, buffers.x.tobytes(), wanted))) is not None:
            raise _costly(ModelError(text))

    def remember(self, buffers: Buffers, states: bytes, wanted: str, error: ModelError) -> None:
        """Note an error that was met at the point of the buffers; ``states`` are those that were asked for."""
        if len(self._errors) >= REMEMBERED:
            del self._errors[next(iter(self._errors))]
        self._errors[_key(buffers, states, wanted)] = str(error)
        _costly(error)


def _key(buffers: Buffers, states: bytes, wanted: str) -> _Key:
    point = buffers.values[:1].tobytes() + states + buffers.u.tobytes()
    return wanted, tuple(v.reference for v in buffers.further), point


def _costly(error: ModelError) -> ModelError:
    error.costs_start = True
    return error
