"""The linear model as a ``control.StateSpace`` with names.

python-control (0.10) refuses '.' in the names of signals and systems because ``system.signal`` is how
it addresses them; it reads a leading '-' as a change of sign, and ``name[1:3]`` as a range. Names from
Modelica are full of dots. :func:`legal_name` writes a dot as '/', and the few other characters that
would be misread as a percent sign and two hexadecimal digits; :func:`original_name` undoes it. Different
names stay different.

>>> legal_name("body.frame_a.r[1]")
'body/frame_a/r[1]'
>>> original_name("body/frame_a/r[1]")
'body.frame_a.r[1]'
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from fmilin.linear_model.model import LinearModel

if TYPE_CHECKING:
    import control

__all__ = ["legal_name", "original_name", "to_control"]

# '/' and '%' are escaped because they are the marks of the code itself; what is below ' ' would break a printout.
_UNSAFE = re.compile(r"^-|[./%:\x00-\x1f]")
_MARKED = re.compile(r"/|%([0-9A-F]{2})")


def legal_name(name: str) -> str:
    """Return ``name`` as python-control accepts it."""
    return _UNSAFE.sub(lambda m: "/" if m.group() == "." else f"%{ord(m.group()):02X}", name)


def original_name(name: str) -> str:
    """Return the model's own name of a signal, state or system that :func:`to_control` made."""
    return _MARKED.sub(lambda m: "." if m.group() == "/" else chr(int(m.group(1), 16)), name)


def to_control(linear: LinearModel) -> control.StateSpace:
    """Return a ``control.StateSpace`` with named states, inputs, outputs and system.

    Its signals are deviations: y - y0, u - u0, out - g0. The constant rate ``f0`` has no place in a state
    space system; at an equilibrium it is zero.
    """
    import control

    # python-control (0.10.2) takes every (1, 0) matrix for (0, 0): a system without inputs gets one, which goes again.
    idle = np.zeros((len(linear.states), 1)), np.zeros((len(linear.outputs), 1))
    system = control.ss(
        linear.A,
        linear.B if len(linear.inputs) else idle[0],
        linear.C,
        linear.D if len(linear.inputs) else idle[1],
        linear.sample_time,
        name=legal_name(linear.model.name) or "model",
        states=[legal_name(name) for name in linear.states.names],
        inputs=[legal_name(name) for name in linear.inputs.names] or ["idle"],
        outputs=[legal_name(name) for name in linear.outputs.names],
    )
    if not len(linear.inputs):
        system.B, system.D = linear.B.copy(), linear.D.copy()
        system.set_inputs([])
    return system
