"""The descriptor system of a linear model as plain data, for every format that carries one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.linear_model.descriptor import Descriptor
from fmilin.output.export.numbers import finite_array

__all__ = ["ARRAYS", "NAMES", "from_part", "require_text", "to_part"]

ARRAYS = ("E", "A", "B", "C", "D", "f0")
NAMES = ("states", "inputs", "outputs")


def to_part(descriptor: Descriptor) -> dict[str, Any]:
    """Return the matrices as arrays, the names as lists, ``order`` and ``difference``."""
    part: dict[str, Any] = {name: getattr(descriptor, name) for name in ARRAYS}
    for name, array in part.items():
        if not np.isfinite(array).all():
            raise UsageError(
                f"The matrix {name} of the descriptor system contains NaN or infinite entries, which no file should "
                "carry. Linearize again at a point where the model is defined."
            )
    part |= {name: list(getattr(descriptor, name)) for name in NAMES}
    return part | {"order": int(descriptor.order), "difference": float(descriptor.difference)}


def from_part(part: Mapping[str, Any]) -> Descriptor:
    """Return the descriptor system that :func:`to_part` described; a difference of None was NaN."""
    states, inputs, outputs = (tuple(require_text(n) for n in part[name]) for name in NAMES)
    k, nu, ny = len(states), len(inputs), len(outputs)
    difference = part["difference"]
    return Descriptor(
        E=_array(part, "E", (k, k)),
        A=_array(part, "A", (k, k)),
        B=_array(part, "B", (k, nu)),
        C=_array(part, "C", (ny, k)),
        D=_array(part, "D", (ny, nu)),
        f0=_array(part, "f0", (k,)),
        states=states,
        inputs=inputs,
        outputs=outputs,
        order=int(part["order"]),
        difference=float("nan") if difference is None else float(difference),
    )


def _array(part: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> FloatArray:
    array = finite_array(part[name], f"{name} of the descriptor system")
    if array.shape != shape and (array.size != np.prod(shape) or (array.size and 1 not in array.shape)):
        raise ValueError(f"{name} of the descriptor system has the shape {array.shape}, but the names say {shape}")
    return array.reshape(shape)


def require_text(value: object) -> str:
    """Return a name or unit, which must be a text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a name or unit should be")
    return value
