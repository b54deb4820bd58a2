"""Second ways of the numbers of a linear model: another eigenvalue algorithm, its descriptor system, plain differences.

Central differences along T need no point of the manifold: x0 + h T e and x0 - h T e leave it by the same h^2, which
cancels in the difference of their rates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fmilin.auditing.loops import compare_margins
from fmilin.auditing.result import Audit, AuditRow, compare, compare_claim, select_worst
from fmilin.design.margins import margins
from fmilin.ground import FloatArray, FmilinError
from fmilin.linear_model.model import LinearModel
from fmilin.model import Model

EPS = float(np.finfo(np.float64).eps)
STEP = 1e-4  # of central differences, in sizes of the variables; again with half of it
OF_DIFFERENCES = 1e-6  # of the largest entry of a row: the accuracy that plain differences are granted
OF_TRANSFER = 1e-7  # of the sizes of its terms: the accuracy of a transfer matrix by another realization
REST = 1e-6  # rates, in sizes of the coordinates per second, up to which the point may be called an equilibrium
ROUNDING = 100.0  # times eps |A|
MOST_STATES = 400  # of eigenvalues and transfer matrices


def audit_linear_model(linear: LinearModel, model: Model | None) -> Audit:
    """Return the audit of a linear model; of a loop with its margins."""
    rows = [*_compare_eigenvalues(linear), *_compare_modes(linear), *_compare_coordinates(linear)]
    rows += [*_compare_descriptor(linear), *_compare_static_gain(linear)]
    unchecked = []
    if any(remark.kind == "loop" for remark in linear.warnings):
        rows += compare_margins(margins(linear))
    if linear.is_equilibrium:
        moves = np.abs(linear.f0) / linear.states.scales(linear.y0)
        holds = float(moves.max(initial=0.0)) <= REST or linear.sample_time > 0
        rows.append(compare_claim("point is an equilibrium", "size of f0", holds=holds))
    if model is None:
        unchecked.append("A, B, C, D, T and f0 against the model: give it (model=)")
    elif linear.sample_time:
        unchecked.append("A, B, C, D, T and f0 against the model: the linear model is sampled")
    else:
        rows += _compare_with_differences(linear, model)
    return Audit("linear model", linear.model.name, tuple(rows), tuple(unchecked))


# -- eigenvalues -------------------------------------------------------------------------------------------------------


def compare_spectrum(
    linear: LinearModel, stated: NDArray[np.complex128], way: str, *, location: str = ""
) -> list[AuditRow]:
    """Compare eigenvalues with those of A by the Schur form of the transposed matrix, in which order they come.

    A computed eigenvalue is exact for a matrix within rounding of A, and as far off as the errors of A allow: multiple
    eigenvalues scatter by far more than rounding, which is no disagreement.
    """
    from scipy.linalg import matrix_balance, schur
    from scipy.optimize import linear_sum_assignment

    if len(stated) != len(linear.A):
        return [compare(f"number of eigenvalues{location}", float(len(stated)), float(len(linear.A)), way, 0.0)]
    if not 0 < len(linear.A) <= MOST_STATES:
        return []
    A = np.asarray(matrix_balance(linear.A, permute=False)[0], dtype=np.float64)
    second = np.diag(schur(A.T[::-1, ::-1].astype(np.complex128), output="complex")[0])
    pairs = linear_sum_assignment(np.abs(stated[:, None] - second))
    rounding = ROUNDING * EPS * (float(np.linalg.norm(A)) or 1.0)
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
    if not 0 < len(linear.A) <= MOST_STATES:
        return
    from scipy.linalg import matrix_balance

    stated = linear.eigenvalues()
    rows = compare_spectrum(linear, stated, "Schur form of A transposed")
    if (worst := select_worst(rows)) is not None:
        yield worst
    A = np.asarray(matrix_balance(linear.A, permute=False)[0], dtype=np.float64)
    rounding = ROUNDING * EPS * (float(np.linalg.norm(A)) or 1.0)
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
    if not 0 < len(linear.A) <= MOST_STATES or linear.T.shape[0] == 0:
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
    if (worst := select_worst(comparisons)) is not None:
        yield worst


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
    values = [linear.point.states.get(name, np.nan) for name in linear.states.names]
    comparisons = [
        compare(f"y0[{name}]", y, x, "state at the point", 1e-9 * max(abs(x), 1.0))
        for name, y, x in zip(linear.states.names, linear.y0.tolist(), values, strict=True)
        if np.isfinite(x)
    ]
    if (worst := select_worst(comparisons)) is not None:
        yield worst


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


def _compare_descriptor(linear: LinearModel) -> Iterator[AuditRow]:
    """Compare transfer matrices and eigenvalues of A with the equations before the constraints were taken out."""
    form = linear.descriptor
    if form is None or not 0 < len(form.A) <= MOST_STATES:
        return
    n = len(linear.A)
    comparisons = []
    errors = linear.errors
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
        for i, j in np.ndindex(G.shape):
            tolerance = OF_TRANSFER * float(size[i, j]) + 3 * float(propagated[i, j])
            name = f"transfer from {linear.inputs.names[j]} to {linear.outputs.names[i]} at s = {s:.3g}"
            comparisons.append(compare(name, complex(G[i, j]), complex(H[i, j]), "descriptor system", tolerance))
    if (worst := select_worst(comparisons)) is not None:
        yield worst
    if n and n == form.order:
        from scipy.linalg import matrix_balance
        from scipy.optimize import linear_sum_assignment

        stated, second = linear.eigenvalues(), form.eigenvalues()
        if len(second) == len(stated):
            rows, columns = linear_sum_assignment(np.abs(stated[:, None] - second))
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
                for i, j in zip(rows, columns, strict=True)
            ]
            if (worst := select_worst(pairs)) is not None:
                yield worst
    yield compare("order", float(n), float(form.order), "descriptor system", 0.0)


def _compare_static_gain(linear: LinearModel) -> Iterator[AuditRow]:
    """Compare the static gain D - C A^-1 B with the solution of the equations as one system."""
    A, B, C, D = linear.A, linear.B, linear.C, linear.D
    n, m = B.shape
    if not n or not m or not len(C) or n > MOST_STATES:
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
    if (worst := select_worst(comparisons)) is not None:
        yield worst


# -- the model ---------------------------------------------------------------------------------------------------------


def _compare_with_differences(linear: LinearModel, model: Model) -> Iterator[AuditRow]:
    """Compare A, B, C, D, T and f0 with the model's rates and outputs around the point."""
    seen = model.with_interface(linear.inputs.names, linear.outputs.names)
    t = linear.point.time
    x = np.array([linear.point.states[name] for name in seen.states.names])
    u = np.array([linear.point.inputs[name] for name in seen.inputs.names])
    if seen.states.names != linear.full_states.names:
        return
    at = seen.evaluate(t, x, u)
    values = np.array([linear.point.outputs[name] for name in linear.outputs.names])
    comparisons = [
        compare(f"output {name}", stated, second, "evaluation of the model", 1e-6 * max(abs(second), 1e-6))
        for name, stated, second in zip(linear.outputs.names, values, at.outputs, strict=True)
    ]
    if (worst := select_worst(comparisons)) is not None:
        yield worst
    chosen = _choose_rows(linear)
    f0 = linear.f0
    if chosen is not None:
        sizes = np.abs(at.derivatives).max(initial=0.0) + 1e-9
        pairs = [
            compare(f"f0[{name}]", f0[i], float(chosen[i] @ at.derivatives), "evaluation of the model", 1e-6 * sizes)
            for i, name in enumerate(linear.states.names)
        ]
        if (worst := select_worst(pairs)) is not None:
            yield worst
    yield from _compare_gradient(linear, seen, t, x, u)
    if chosen is None:
        return
    x_scales, u_scales = seen.states.scales(x), seen.inputs.scales(u)
    slopes = {}
    for part in (1.0, 0.5):
        try:
            slopes[part] = _differentiate(linear, seen, (t, x, u), (x_scales, u_scales), part * STEP)
        except FmilinError:
            return
    for number, (name, matrix, error) in enumerate(
        (("A", linear.A, linear.errors.A), ("B", linear.B, linear.errors.B),
         ("C", linear.C, linear.errors.C), ("D", linear.D, linear.errors.D))
    ):  # fmt: skip
        rough, fine = (slopes[part][number] for part in (1.0, 0.5))
        if name in "AB":
            rough, fine = chosen @ rough, chosen @ fine
        yield from _compare_entries(linear, name, matrix, error, (rough, fine))


def _choose_rows(linear: LinearModel) -> FloatArray | None:
    """Return what takes rates of the coordinates from those of all states: y' = R x'."""
    names = linear.full_states.names
    if set(linear.states.names) <= set(names):
        return np.eye(len(names))[[names.index(name) for name in linear.states.names]]
    at_rest = float(np.abs(linear.f0).max(initial=0.0)) <= 1e-9
    return np.asarray(np.linalg.pinv(linear.T), dtype=np.float64) if at_rest else None


def _differentiate(
    linear: LinearModel,
    model: Model,
    at: tuple[float, FloatArray, FloatArray],
    scales: tuple[FloatArray, FloatArray],
    step: float,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the derivatives of rates and outputs along T and the inputs by central differences."""
    t, x, u = at
    rates, outputs = [], []
    for dx in linear.T.T:
        h = step / float((np.abs(dx) / scales[0]).max() or 1.0)
        after, before = model.evaluate(t, x + h * dx, u), model.evaluate(t, x - h * dx, u)
        rates.append((after.derivatives - before.derivatives) / (2 * h))
        outputs.append((after.outputs - before.outputs) / (2 * h))
    for j in range(len(u)):
        h = step * float(scales[1][j])
        du, dx = h * np.eye(len(u))[j], h * linear.T_u[:, j]
        after, before = model.evaluate(t, x + dx, u + du), model.evaluate(t, x - dx, u - du)
        rates.append((after.derivatives - before.derivatives) / (2 * h))
        outputs.append((after.outputs - before.outputs) / (2 * h))
    P = linear.T.shape[1]
    F = np.array(rates).reshape(P + len(u), len(x)).T
    G = np.array(outputs).reshape(P + len(u), len(linear.outputs)).T
    return F[:, :P], F[:, P:], G[:, :P], G[:, P:]


def _compare_entries(
    linear: LinearModel, name: str, matrix: FloatArray, error: FloatArray, differences: tuple[FloatArray, FloatArray]
) -> Iterator[AuditRow]:
    rough, fine = differences
    rows = linear.states.names if name in "AB" else linear.outputs.names
    columns = linear.states.names if name in "AC" else linear.inputs.names
    if not matrix.size or not np.isfinite(fine).all():
        return
    largest = np.maximum(np.abs(matrix).max(axis=1, initial=0.0), np.abs(fine).max(axis=1, initial=0.0))
    floor = OF_DIFFERENCES * np.maximum(largest, 1e-6 * largest.max(initial=0.0))[:, None]
    tolerance = 3 * error + 4 * np.abs(rough - fine) + floor
    way = "central differences"
    comparisons = [
        compare(f"{name}[{rows[i]}, {columns[j]}]", float(matrix[i, j]), float(fine[i, j]), way, float(tolerance[i, j]))
        for i, j in np.ndindex(matrix.shape)
    ]
    if (worst := select_worst(comparisons)) is not None:
        yield worst


def _compare_gradient(linear: LinearModel, model: Model, t: float, x: FloatArray, u: FloatArray) -> Iterator[AuditRow]:
    """Compare T with the constraints: their residuals must not change along it."""
    if not len(model.constraints) or not linear.T.size:
        return
    scales = model.states.scales(x)
    residual = model.constraint_residuals(t, x, u)
    at_point = model.evaluate(t, x, u).residuals if residual is None else residual
    sizes = _measure_residuals(model, t, x, u, scales)
    comparisons = []
    for name, dx in zip(linear.states.names, linear.T.T, strict=True):
        h = STEP / float((np.abs(dx) / scales).max() or 1.0)
        after, before = model.evaluate(t, x + h * dx, u).residuals, model.evaluate(t, x - h * dx, u).residuals
        change = np.abs(after - before) / (2 * h) / sizes
        error = 1e-6 + 10 * STEP**2
        comparisons.append(
            compare(f"change of the constraints along T[:, {name}]", 0.0, float(change.max(initial=0.0)),
                    "central differences", error * float((np.abs(dx) / scales).sum()))
        )  # fmt: skip
    if len(at_point) and (worst := select_worst(comparisons)) is not None:
        yield worst


def _measure_residuals(model: Model, t: float, x: FloatArray, u: FloatArray, scales: FloatArray) -> FloatArray:
    """Return by how much each residual changes with the states, each moved by its size."""
    total = np.zeros(len(model.evaluate(t, x, u).residuals))
    for i, scale in enumerate(scales):
        dx = STEP * scale * np.eye(len(x))[i]
        total += np.abs(model.evaluate(t, x + dx, u).residuals - model.evaluate(t, x - dx, u).residuals) / (2 * STEP)
    return np.where(total > 0, total, 1.0)
