"""Second ways of the numbers of a linear model: another eigenvalue algorithm, another realization.

The finite eigenvalues of descriptor systems are compared with those by shifting and inverting.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fmilin.auditing.audit_result import Audit, AuditRow, compare, compare_claim, compare_entries, keep_worst
from fmilin.auditing.derivative_audit import compare_derivatives
from fmilin.auditing.difference_audit import compare_with_differences
from fmilin.auditing.loop_audit import compare_margins
from fmilin.design.margins import margins
from fmilin.linear_model.descriptor import Descriptor
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import AUDIT_EQUILIBRIUM_TOLERANCE, AUDIT_TRANSFER_TOLERANCE, EPS

ROUNDING_FACTOR = 100.0  # times eps |A|
MAX_STATES = 400  # of eigenvalues and transfer matrices


def audit_linear_model(linear: LinearModel, model: Model | None) -> Audit:
    """Return the audit of a linear model; of a loop with its margins."""
    rows = [*_compare_eigenvalues(linear), *_compare_modes(linear), *_compare_coordinates(linear)]
    rows += [*_compare_descriptor(linear), *_compare_static_gain(linear)]
    unchecked = [
        "errors and accuracy: estimates, from which the tolerances of this audit follow",
        "sample_time and point.time: nothing else in the result determines them",
    ]
    if any(remark.kind == "loop" for remark in linear.warnings):
        rows += compare_margins(margins(linear))
    if linear.is_equilibrium:
        moves = np.abs(linear.f0) / linear.states.scales(linear.y0)
        holds = float(moves.max(initial=0.0)) <= AUDIT_EQUILIBRIUM_TOLERANCE or linear.sample_time > 0
        rows.append(compare_claim("point is an equilibrium", "size of f0", holds=holds))
    if linear.descriptor is not None:
        unchecked.append("descriptor.f0 and descriptor.difference: no transfer depends on them")
    if model is None or linear.sample_time:
        why = "give it (model=)" if model is None else "the linear model is sampled"
        unchecked.append(f"A, B, C, D, T, T_u, f0, point and derivatives against the model: {why}")
    else:
        rows += compare_with_differences(linear, model)
        derivative_rows, derivative_texts = compare_derivatives(linear, model)
        rows += derivative_rows
        unchecked += derivative_texts
    return Audit("linear model", linear.model.name, tuple(rows), tuple(unchecked))


# -- eigenvalues -------------------------------------------------------------------------------------------------------


def compare_spectrum(
    linear: LinearModel, stated: NDArray[np.complex128], way: str, *, location: str = ""
) -> list[AuditRow]:
    """Compare eigenvalues with those of A by the Schur form of the transposed matrix, in which order they come.

    A computed eigenvalue is exact for a matrix within rounding of A, and as far off as the errors of A allow: multiple
    eigenvalues scatter by far more than rounding, which is not a disagreement.
    """
    from scipy.linalg import matrix_balance, schur
    from scipy.optimize import linear_sum_assignment

    if len(stated) != len(linear.A):
        return [compare(f"number of eigenvalues{location}", float(len(stated)), float(len(linear.A)), way, 0.0)]
    if not 0 < len(linear.A) <= MAX_STATES:
        return []
    A = np.asarray(matrix_balance(linear.A, permute=False)[0], dtype=np.float64)
    second = np.diag(schur(A.T[::-1, ::-1].astype(np.complex128), output="complex")[0])
    pairs = linear_sum_assignment(np.abs(stated[:, None] - second))
    rounding = ROUNDING_FACTOR * EPS * (float(np.linalg.norm(A)) or 1.0)
    return [
        compare(
            f"eigenvalue {i + 1}{location}",
            complex(stated[i]),
            complex(second[j]),
            way,
            _estimate_scatter(A, complex(second[j]), rounding),
        )
        for i, j in zip(*pairs, strict=True)
    ]


def _compare_eigenvalues(linear: LinearModel) -> Iterator[AuditRow]:
    """Compare eigenvalues with another algorithm, A with each of them, their sum with the trace, and the verdict."""
    if not 0 < len(linear.A) <= MAX_STATES:
        return
    from scipy.linalg import matrix_balance

    stated = linear.eigenvalues()
    rows = compare_spectrum(linear, stated, "Schur form of A transposed")
    yield from keep_worst(rows)
    A = np.asarray(matrix_balance(linear.A, permute=False)[0], dtype=np.float64)
    rounding = ROUNDING_FACTOR * EPS * (float(np.linalg.norm(A)) or 1.0)
    smallest = [np.linalg.svd(A - value * np.eye(len(A)), compute_uv=False)[-1] for value in stated]
    k = int(np.argmax(smallest))
    yield compare(
        f"distance of A from a matrix with eigenvalue {k + 1}", 0.0, float(smallest[k]), "singular values", rounding
    )
    total = complex(stated.sum())
    yield compare("sum of the eigenvalues", total, float(np.trace(linear.A)), "trace of A", len(A) * rounding)
    yield from _compare_stability(linear, rows)


def _compare_stability(linear: LinearModel, rows: list[AuditRow]) -> Iterator[AuditRow]:
    """Compare the verdict on stability with the second way's eigenvalues, where these are clear of the limit."""
    verdict = linear.stability().stable
    if verdict is None:
        return
    errors = linear.eigenvalue_errors()
    reach = 3 * float(errors.max(initial=0.0))
    excess = []
    for row in rows:
        value = complex(row.second_way)
        beyond = abs(value) - 1 if linear.sample_time else value.real
        excess.append((beyond - row.tolerance - reach, beyond + row.tolerance + reach))
    way = "Schur form of A transposed"
    if any(low > 0 for low, _ in excess):
        yield compare_claim("deviations do not grow", way, stated=verdict, holds=False)
    elif all(high < 0 for _, high in excess):
        yield compare_claim("deviations do not grow", way, stated=verdict, holds=True)


def _estimate_scatter(A: FloatArray, value: complex, rounding: float) -> float:
    """Return how far from an eigenvalue the smallest singular value of A - lambda stays within rounding."""
    size = float(np.linalg.norm(A)) or 1.0
    reach = 10 * rounding
    for radius in np.geomspace(rounding, size, 60):
        around = [value + radius * turn for turn in (1, -1, 1j, -1j)]
        smallest = max(np.linalg.svd(A - z * np.eye(len(A)), compute_uv=False)[-1] for z in around)
        if smallest > rounding:
            break
        reach = 2 * float(radius)
    return reach


def _compare_modes(linear: LinearModel) -> Iterator[AuditRow]:
    """Compare mode shapes with A: T A v = lambda T v, v from the shape in all states by least squares."""
    if not 0 < len(linear.A) <= MAX_STATES or linear.T.shape[0] == 0:
        return
    if np.linalg.matrix_rank(linear.T) < len(linear.A):  # of a sampled loop: what was read last is a state of A only
        return
    inverse = np.linalg.pinv(linear.T)
    size = float(np.linalg.norm(linear.A)) or 1.0
    comparisons = []
    for number, mode in enumerate(linear.modes(), 1):
        v = inverse @ np.asarray(mode.shape)
        if not np.isfinite(v).all() or not np.linalg.norm(v):
            continue
        v = v / np.linalg.norm(v)
        value = mode.eigenvalue  # of a sampled model that of the continuous motion
        if linear.sample_time:
            value = complex(np.exp(value * linear.sample_time))
        residual = float(np.linalg.norm(linear.A @ v - value * v))
        comparisons.append(compare(f"residual A v - lambda v of mode {number}", 0.0, residual, "product", 1e-9 * size))
    yield from keep_worst(comparisons)


# -- coordinates -------------------------------------------------------------------------------------------------------


def _compare_coordinates(linear: LinearModel) -> Iterator[AuditRow]:
    """Compare rows of T and T_u at coordinates that are states with the identity and with zero."""
    names = linear.full_states.names
    if not set(linear.states.names) <= set(names) or not len(linear.states):
        return
    at = [names.index(name) for name in linear.states.names]
    deviation = np.abs(linear.T[at] - np.eye(len(at)))
    i, j = np.unravel_index(int(np.argmax(deviation)), deviation.shape)
    quantity = f"T[{names[at[i]]}, {linear.states.names[j]}]"
    tolerance = 1e-9 + float(linear.errors.T[at].max(initial=0.0))
    yield compare(quantity, float(linear.T[at[i], j]), float(i == j), "coordinates are states", tolerance)
    if linear.T_u.size:
        size = 1e-9 * max(float(np.abs(linear.T_u).max()), 1e-9)
        signals = linear.states.names, linear.inputs.names
        zero = np.zeros((len(at), len(linear.inputs)))
        yield from compare_entries("T_u", (linear.T_u[at], zero), "coordinates are states", np.array(size), signals)
    values = [linear.point.states.get(name, np.nan) for name in linear.states.names]
    comparisons = [
        compare(f"y0[{name}]", y, x, "state at the point", 1e-9 * max(abs(x), 1.0))
        for name, y, x in zip(linear.states.names, linear.y0.tolist(), values, strict=True)
        if np.isfinite(x)
    ]
    yield from keep_worst(comparisons)


# -- other realizations ------------------------------------------------------------------------------------------------


def _sample_points(linear: LinearModel) -> list[complex]:
    """Return complex frequencies of the sizes of the eigenvalues, away from them."""
    sizes = np.abs(linear.eigenvalues()) if len(linear.A) else np.ones(1)
    sizes = sizes[sizes > 0]
    middle = float(np.exp(np.mean(np.log(sizes)))) if len(sizes) else 1.0
    return [middle * point for point in (0.7 + 1.1j, 2.3 + 0.4j)]


def _evaluate_transfer(matrices: tuple[FloatArray, ...], s: complex) -> tuple[NDArray[np.complex128], FloatArray]:
    """Return C (s E - A)^-1 B + D, and the sizes of its terms."""
    E, A, B, C, D = matrices
    x = np.linalg.solve(s * E - A, B.astype(np.complex128))
    return np.asarray(C @ x + D, dtype=np.complex128), np.abs(C) @ np.abs(x) + np.abs(D)


def _list_chains(inputs: Signals) -> list[list[int]]:
    """Return each input with its derivatives, where these are inputs of their own: prescribed motions have them."""
    rates = inputs.rates
    chains = []
    for first in range(len(inputs)):
        if first in rates.values():
            continue
        chain = [first]
        while chain[-1] in rates:
            chain.append(rates[chain[-1]])
        chains.append(chain)
    return chains


def _compare_descriptor(linear: LinearModel) -> Iterator[AuditRow]:
    """Compare transfer matrices and eigenvalues of A with the equations before the constraints were taken out."""
    form = linear.descriptor
    if form is None or not 0 < len(form.A) <= MAX_STATES:
        return
    n = len(linear.A)
    comparisons = []
    errors = linear.errors
    chains = _list_chains(linear.inputs)
    for s in _sample_points(linear):
        try:
            G, size = _evaluate_transfer((np.eye(n), linear.A, linear.B, linear.C, linear.D), s)
            H, _ = _evaluate_transfer((form.E, form.A, form.B, form.C, form.D), s)
        except np.linalg.LinAlgError:
            continue
        if not G.size:
            break
        resolvent = np.abs(np.linalg.inv(s * np.eye(n) - linear.A))
        x, y = resolvent @ np.abs(linear.B), np.abs(linear.C) @ resolvent
        propagated = errors.D + errors.C @ x + y @ errors.A @ x + y @ errors.B
        for chain in chains:
            names = [linear.inputs.names[j] for j in chain]
            stated = sum(s**k * G[:, j] for k, j in enumerate(chain))
            columns = [form.inputs.index(name) for name in names if name in form.inputs]
            second = sum(s**k * H[:, j] for k, j in enumerate(columns))
            allowed = AUDIT_TRANSFER_TOLERANCE * size + 3 * propagated
            terms = sum(abs(s) ** k * allowed[:, j] for k, j in enumerate(chain))
            if not columns:
                continue
            comparisons += [
                compare(
                    f"transfer from {names[0]} to {linear.outputs.names[i]} at s = {s:.3g}",
                    complex(np.asarray(stated)[i]),
                    complex(np.asarray(second)[i]),
                    "descriptor system",
                    float(np.asarray(terms)[i]),
                )
                for i in range(len(linear.outputs))
            ]
    yield from keep_worst(comparisons)
    if n and n == form.order:
        from scipy.linalg import matrix_balance
        from scipy.optimize import linear_sum_assignment

        stated, second = linear.eigenvalues(), form.eigenvalues()
        if len(second) == len(stated):
            matched = linear_sum_assignment(np.abs(stated[:, None] - second))
            A = np.asarray(matrix_balance(linear.A, permute=False)[0], dtype=np.float64)
            rounding = 1e-9 * (float(np.linalg.norm(A)) or 1.0) + float(np.linalg.norm(errors.A))
            pairs = [
                compare(
                    f"eigenvalue {i + 1}",
                    stated[i],
                    second[j],
                    "pencil of the descriptor system",
                    _estimate_scatter(A, complex(stated[i]), rounding) + 3 * float(linear.eigenvalue_errors()[i]),
                )
                for i, j in zip(*matched, strict=True)
            ]
            yield from keep_worst(pairs)
    yield compare("order", float(n), float(form.order), "descriptor system", 0.0)


def _compare_static_gain(linear: LinearModel) -> Iterator[AuditRow]:
    """Compare the static gain D - C A^-1 B with the solution of the equations as one system."""
    A, B, C, D = linear.A, linear.B, linear.C, linear.D
    n, m = B.shape
    if not n or not m or not len(C) or n > MAX_STATES:
        return
    steady = A - np.eye(n) if linear.sample_time else A
    if np.linalg.cond(steady) > 1e10:
        return
    stated = D - C @ np.linalg.solve(steady, B)
    U, sigma, Vt = np.linalg.svd(steady)
    second = D - C @ (Vt.T @ ((U.T @ B) / sigma[:, None]))
    sizes = np.abs(D) + np.abs(C) @ np.abs(np.linalg.inv(steady)) @ np.abs(B)
    comparisons = [
        compare(
            f"static gain from {linear.inputs.names[j]} to {linear.outputs.names[i]}",
            float(stated[i, j]),
            float(second[i, j]),
            "singular value decomposition",
            1e-5 * float(sizes[i, j]) + 1e-12 * float(sizes.max()),
        )
        for i, j in np.ndindex(stated.shape)
    ]
    yield from keep_worst(comparisons)


UNCHECKED_OF_DESCRIPTORS = (
    "E, A, B, C, D, f0 and difference: audit its linear model, which is compared with their transfer matrix"
)
DIGITS = 1e-6  # relative: QZ loses digits of finite eigenvalues if others are infinite
SHIFT = 0.37 + 0.71j  # of the size of the eigenvalues: near none of them, mostly


def audit_descriptor(descriptor: Descriptor) -> Audit:
    """Return the audit of a descriptor system: its finite eigenvalues and their number."""
    rows: list[AuditRow] = []
    E, A = descriptor.E, descriptor.A
    stated = descriptor.eigenvalues()
    if len(A):
        shift = SHIFT * max(float(np.abs(stated).max(initial=0.0)), 1.0)
        inverse = np.linalg.eigvals(np.linalg.solve(A - shift * E, E.astype(np.complex128)))
        largest = inverse[np.argsort(-np.abs(inverse), kind="stable")]
        finite = shift + 1 / largest[: descriptor.order]
        rows += _compare_finite_eigenvalues(stated, finite)
        rest = np.abs(largest[descriptor.order :]).max(initial=0.0)
        least = np.abs(largest[: descriptor.order]).min(initial=np.inf)
        way = "eigenvalues of the shifted inverse"
        rows.append(compare_claim("order, which separates finite from infinite", way, holds=bool(rest < 0.1 * least)))
    return Audit("descriptor system", "", tuple(rows), (UNCHECKED_OF_DESCRIPTORS,))


def _compare_finite_eigenvalues(stated: np.ndarray, second: np.ndarray) -> list[AuditRow]:
    from scipy.optimize import linear_sum_assignment

    size = float(np.abs(second).max(initial=0.0)) or 1.0
    pairs = linear_sum_assignment(np.abs(stated[:, None] - second))
    return keep_worst(
        compare(f"eigenvalue {i + 1}", stated[i], second[j], "eigenvalues of the shifted inverse", DIGITS * size)
        for i, j in zip(*pairs, strict=True)
    )
