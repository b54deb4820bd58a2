"""The table of definitions of Peterson et al. at a point, from the functions that the procedure is made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fmilin import OperatingPoint
from fmilin.models import KaneModel
from fmilin.signals import FloatArray


class Blocks(NamedTuple):
    """Gradients with (q', u', lambda) as they solve the equations, named as in the table."""

    M_qq: FloatArray
    M_uqc: FloatArray
    M_uuc: FloatArray
    M_uqd: FloatArray
    M_uud: FloatArray
    M_uld: FloatArray
    A_qq: FloatArray
    A_qu: FloatArray
    A_uqc: FloatArray
    A_uuc: FloatArray
    A_uqd: FloatArray
    A_uud: FloatArray
    B_q: FloatArray
    B_uc: FloatArray
    B_u: FloatArray


def blocks(model: KaneModel, point: OperatingPoint) -> Blocks:
    """Return the table; rows q are kinematic equations, c acceleration constraints, d dynamic equations."""
    form, functions, inputs = model.form, model.engine.form_functions, model._input_columns
    arguments = model.engine.arguments(point.time, point.states, point.inputs)
    expansion = functions.at(arguments[None])
    n, o, m = len(form.q), len(form.u), len(form.acceleration)
    M_qq, _ = functions._kinematics(arguments)
    W, _ = functions._dynamics(arguments, expansion.rates[0, :n])
    J = expansion.J[0, len(form.f_c) + len(form.velocity) :]
    q, q_dot, u = slice(1, 1 + n), slice(1 + n, 1 + 2 * n), slice(1 + 2 * n, 1 + 2 * n + o)
    J_q, J_c, J_d = np.split(J, [n, n + m])
    return Blocks(
        *(M_qq, J_c[:, q_dot], W[:m, :o], J_d[:, q_dot], W[m:, :o], W[m:, o:]),
        *(-rows[:, columns] for rows in (J_q, J_c, J_d) for columns in (q, u)),
        *(-rows[:, inputs] for rows in (J_q, J_c, J_d)),
    )
