"""Linear models and descriptor systems as names with arrays, numbers and texts: the format ``fmilin-linear/1``."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.errors import UsageError
from fmilin.export.archives import finite_array, real_array
from fmilin.export.checksum import list_remarks
from fmilin.export.record import (
    ByName,
    Convert,
    Labelled,
    Record,
    Stored,
    describe_restore_errors,
    read_by_name,
    read_number,
    read_remarks,
    read_signals,
    read_text,
    read_texts,
    require_format,
    restore_shape,
    write_details,
    write_remarks,
)
from fmilin.export.sparse_entries import DenseRows, SparseEntries
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.descriptor import Derivative, Descriptor, LazyDescriptor, MatrixErrors
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearizationMethod, LinearizationPoint, LinearModel
from fmilin.linear_model.no_response import assess_stability
from fmilin.linear_model.sparse import SparseLinearModel, is_sparse
from fmilin.linear_model.sparse_matrices import SparseErrors, SparseMatrices
from fmilin.model.interface import ModelInfo
from fmilin.numerics.eigenvalue_errors import estimate_eigenvalues
from fmilin.report.zero_texts import has_zeros
from fmilin.signals import FloatArray, Signals
from fmilin.version import __version__

if TYPE_CHECKING:
    from scipy import sparse

logger = logging.getLogger("fmilin.files")

FORMAT = "fmilin-linear/1"
MAX_STATES_WITH_ROWS = 1000  # of JSON and .npz files: the zeros of a larger model take more time than all else
MATRICES = {
    "A": ("states", "states"),
    "B": ("states", "inputs"),
    "C": ("outputs", "states"),
    "D": ("outputs", "inputs"),
    "T": ("full_states", "states"),
    "T_u": ("full_states", "inputs"),
}
"""Which signals the rows and the columns of each matrix belong to."""

ARRAYS: dict[str, tuple[str, ...]] = {**MATRICES, "f0": ("states",), "y0": ("states",)}
ERRORS = ("A", "B", "C", "D", "T")  # matrices that have an error estimate for every entry
GROUPS = ("states", "full_states", "inputs", "outputs")  # the four lists of names
POINT_PARTS = ("states", "inputs", "outputs", "parameters")  # what a point has values of, by name
DERIVATIVE = ("A", "B", "C", "D", "states", "inputs")  # arrays of a derivative by a parameter
DESCRIPTOR = {
    "E": ("states", "states"),
    "A": ("states", "states"),
    "B": ("states", "inputs"),
    "C": ("outputs", "states"),
    "D": ("outputs", "inputs"),
    "f0": ("states",),
}
"""The arrays of a descriptor system, and the names that their axes belong to."""

DISCRETE = ("A", "B", "C", "D", "f0")  # arrays of the discrete model inside a co-simulation FMU


def require_writable(linear: LinearModel) -> None:
    """Check that files can hold a linear model, without computing eigenvalues or anything else from it.

    Raises UsageError if a matrix has NaN or infinite entries, or if a name or another text cannot be encoded.

    Parameters
    ----------
    linear : LinearModel

    Examples
    --------
    >>> import fmilin as fl
    >>> fl.export.require_writable(fl.linearize(fl.systems.cartesian_pendulum()))
    """
    for name in ARRAYS:
        if not np.isfinite(_read_numbers(linear, name)).all():
            raise UsageError(
                f"The matrix {name} contains NaN or infinite entries, which cannot be saved. Linearize again at a "
                "point where the model is defined."
            )
    if nul := [s.name for group in GROUPS for s in getattr(linear, group) if "\0" in s.name]:
        raise UsageError(f"The name {nul[0]!r} contains the character NUL, which no file format supports. Rename it.")
    _require_texts(linear)


def _read_numbers(linear: LinearModel, name: str) -> FloatArray:
    """Return the numbers of a matrix or vector that are not zero by the structure of the model, in any shape."""
    numbers: FloatArray = (
        # arrays of a large model are made only where they are used
        getattr(linear.sparse, name).data if name in MATRICES and is_sparse(linear) else getattr(linear, name)
    )
    return numbers


def _require_texts(linear: LinearModel) -> None:
    texts = [t for group in GROUPS for s in getattr(linear, group) for t in (s.name, s.unit, s.description, *s.aliases)]
    texts += [linear.model.name, linear.model.guid, linear.model.tool, *map(str, linear.warnings)]
    try:
        "\n".join(texts).encode("utf-8")
    except UnicodeEncodeError:
        bad = next(t for t in texts if any("\ud800" <= c <= "\udfff" for c in t))
        raise UsageError(
            f"{bad[:70]!a} is not a text: it contains one half of a pair of surrogates, which no file can store. Give "
            "it another name."
        ) from None


def to_arrays(linear: LinearModel) -> Record:
    """Return everything in a linear model, and its eigenvalues. Raises UsageError as :func:`require_writable`."""
    require_writable(linear)
    if is_sparse(linear):
        return _to_sparse_record(linear)
    estimates = estimate_eigenvalues(linear.A, linear.errors.A, sampled=linear.sample_time > 0)
    arrays = {name: Labelled(getattr(linear, name), axes) for name, axes in ARRAYS.items()}
    arrays["eigenvalues"] = Labelled(estimates.values, ("mode",))
    arrays["eigenvalue_errors"] = Labelled(estimates.errors, ("mode",))
    return Record(
        FORMAT,
        arrays,
        dict(_list_facts(linear)),
        top_level=(*MATRICES, "f0", *GROUPS, "descriptor", "discrete"),
        additions={
            ".json": lambda: {**_list_eigenvalue_derivatives(linear), **_list_zeros(linear)},
            ".mat": lambda: _list_offsets(linear),
        },
    )


def _to_sparse_record(linear: SparseLinearModel) -> Record:
    """Return everything in a large linear model but its eigenvalues, which are as many as the states."""
    matrices = linear.sparse
    facts = dict(_list_facts(linear))
    entries = {name: SparseEntries.of_matrix(getattr(matrices, name)) for name in MATRICES}
    facts["sparse"] = entries
    # Programs that read a matrix by its name get it in the shape that smaller models have, while that is of a size.
    has_rows = len(linear.states) <= MAX_STATES_WITH_ROWS
    facts |= {"eigenvalues": None, "eigenvalue_errors": None}  # not computed
    arrays = {name: Labelled(getattr(linear, name), ARRAYS[name]) for name in ("f0", "y0")}
    return Record(
        FORMAT,
        arrays,
        facts,
        top_level=("f0", *GROUPS),
        additions={
            ".json": lambda: {name: DenseRows(value) if has_rows else None for name, value in entries.items()},
            ".npz": lambda: {name: value.to_matrix().toarray() for name, value in entries.items() if has_rows},
            ".mat": lambda: entries | _list_offsets(linear),
        },
    )


def _list_offsets(linear: LinearModel) -> dict[str, FloatArray]:
    """Return what MATLAB's deviations are counted from, as columns: states, inputs, outputs and the rates there."""

    def read(signals: Signals, values: Mapping[str, float]) -> FloatArray:
        return np.array([float(values.get(name, np.nan)) for name in signals.names]).reshape(-1, 1)

    return {
        "x0": np.asarray(linear.y0, dtype=np.float64).reshape(-1, 1),
        "u0": read(linear.inputs, linear.point.inputs),
        "y0": read(linear.outputs, linear.point.outputs),
        "dx0": np.asarray(linear.f0, dtype=np.float64).reshape(-1, 1),
    }


def _list_zeros(linear: LinearModel) -> dict[str, Any]:
    """Return the transmission zeros and their errors; nothing where they are not defined, or take too long."""
    if not has_zeros(linear):
        return {}
    structure = linear.zero_structure()
    return {"zeros": structure.zeros, "zero_errors": structure.errors}


def _list_eigenvalue_derivatives(linear: LinearModel) -> dict[str, Any]:
    return {"eigenvalue_derivatives": linear.eigenvalue_derivatives()} if linear.derivatives else {}


def _list_facts(linear: LinearModel) -> Iterator[tuple[str, Any]]:
    if is_sparse(linear):
        errors = linear.sparse.errors
        yield "errors", {name: SparseEntries.of_matrix(getattr(errors, name)) for name in ERRORS}
    else:
        yield "errors", {name: getattr(linear.errors, name) for name in ERRORS}
    for group in GROUPS:
        yield group, list(getattr(linear, group).names)
    yield "units", ByName({s.name: s.unit for group in GROUPS for s in getattr(linear, group)})
    values = {
        part: ByName({name: float(value) for name, value in getattr(linear.point, part).items()})
        for part in POINT_PARTS
    }
    yield "point", {"time": float(linear.point.time), **values}
    yield "accuracy", {name: float(value) for name, value in asdict(linear.accuracy).items()}
    yield "method", asdict(linear.method)
    yield "model", asdict(linear.model)
    yield "warnings", write_remarks(linear.warnings)
    yield "equilibrium", linear.is_equilibrium  # None: not tested
    stability = None if is_sparse(linear) else assess_stability(linear)
    yield "stable", None if stability is None else stability.stable  # None, too, where it cannot be decided
    yield "sample_time", float(linear.sample_time)
    yield "signals", {group: write_details(getattr(linear, group)) for group in GROUPS}
    yield "fmilin_version", __version__
    # A descriptor system that was not requested is not computed for a file: those of Modelica models are large.
    is_pending = isinstance(linear.descriptor, LazyDescriptor) and not linear.descriptor.was_read
    if linear.descriptor is not None and not is_pending:
        yield "descriptor", _write_descriptor(linear.descriptor)
    if linear.derivatives:
        yield "derivatives", ByName({name: write_derivative(d) for name, d in linear.derivatives.items()})
    if linear.discrete is not None:
        yield "discrete", _write_discrete(linear.discrete)
    yield "format", FORMAT


def from_arrays(stored: Stored, origin: str) -> LinearModel:
    """Return the linear model that :func:`to_arrays` described; ``origin`` names the file in messages."""
    require_format(stored, origin, FORMAT, "linear model")
    with describe_restore_errors(origin):
        return read_linear_model(stored)


def read_linear_model(stored: Stored) -> LinearModel:
    """Return the linear model of a record, whatever else is in it."""
    facts = stored.facts
    groups: dict[str, Any] = {group: read_signals(facts[group], facts["signals"][group]) for group in GROUPS}
    sizes = {group: len(signals) for group, signals in groups.items()}
    is_stored_sparse = isinstance(facts.get("sparse"), Mapping)
    names = ("f0", "y0") if is_stored_sparse else tuple(ARRAYS)
    arrays: dict[str, Any] = {
        name: stored.read_array(name, tuple(sizes[axis] for axis in ARRAYS[name]), convert=finite_array)
        for name in names
    }
    if not 0 <= (sample_time := read_number(facts["sample_time"])) < float("inf"):
        raise ValueError(f"the sample time is {sample_time:g} s")
    values = {
        **arrays,
        **groups,
        **_read_statements(stored),
        "sample_time": sample_time,
        "derivatives": read_derivatives(_read_derivatives(facts), sizes),
    }
    if is_stored_sparse:
        return SparseLinearModel.of_matrices(_read_sparse_matrices(facts, sizes), values)
    # Earlier versions wrote the errors into .npz files as arrays alone.
    errors = facts["errors"] if "errors" in facts else {name: stored.arrays[f"error_{name}"] for name in ERRORS}
    linear = LinearModel(
        **values,
        errors=EntryErrors(**{name: _read(errors, name, arrays[name].shape, real_array) for name in ERRORS}),
        descriptor=_read_descriptor(facts["descriptor"]) if facts.get("descriptor") is not None else None,
    )
    discrete = facts.get("discrete")
    return linear if discrete is None else replace(linear, discrete=_read_discrete(discrete, linear))


def _read_statements(stored: Stored) -> dict[str, Any]:
    """Return what a file says of the point, the accuracy, the method and the model."""
    facts = stored.facts
    point, method = facts["point"], facts["method"]
    return {
        "point": LinearizationPoint(
            read_number(point["time"]), **{part: read_by_name(point[part]) for part in POINT_PARTS}
        ),
        "accuracy": Accuracy(**{f.name: read_number(facts["accuracy"][f.name]) for f in fields(Accuracy)}),
        "method": LinearizationMethod(
            read_text(method["derivatives"]),
            read_text(method["coordinates"]),
            int(read_number(method["evaluations"])),
            int(read_number(method["products"])),
        ),
        "model": ModelInfo(**{f.name: read_text(facts["model"][f.name]) for f in fields(ModelInfo)}),
        "warnings": (*read_remarks(facts["warnings"]), *list_remarks(stored.integrity)),
    }


def _read_sparse_matrices(facts: Mapping[str, Any], sizes: Mapping[str, int]) -> SparseMatrices:
    """Return the matrices of a large model; those of entries and of errors have the same positions."""
    matrices: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for name, axes in MATRICES.items():
        matrix = _read_sparse(facts["sparse"][name], name, tuple(sizes[axis] for axis in axes))
        if name in ERRORS:
            error = _read_sparse(facts["errors"][name], f"the error of {name}", matrix.shape)
            # Zeros are not stored in every format: each of both has zeros where the other one alone has an entry.
            matrix, error = _align(matrix, error), _align(error, matrix)
            errors[name] = error
        matrices[name] = matrix
    return SparseMatrices(**matrices, errors=SparseErrors(**errors))


def _read_sparse(value: Any, name: str, shape: tuple[int, ...]) -> sparse.csr_array[Any]:
    entries = SparseEntries.of_mapping(value)
    finite_array(entries.parts[2], name)
    if entries.shape != shape:
        raise ValueError(f"{name} has the shape {entries.shape}, but the names require {shape}")
    return entries.to_matrix()


def _align(matrix: sparse.csr_array[Any], other: sparse.csr_array[Any]) -> sparse.csr_array[Any]:
    """Return a matrix with further entries of zero where another one has entries."""
    from scipy import sparse

    rows, columns = (np.concatenate(parts) for parts in zip(matrix.tocoo().coords, other.tocoo().coords, strict=True))
    values = np.concatenate((matrix.data, np.zeros(other.nnz)))
    aligned = sparse.csr_array((values, (rows, columns)), shape=matrix.shape)  # entries at one position are added
    aligned.sort_indices()
    return aligned


def _read_derivatives(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    derivatives = facts.get("derivatives") or {}
    return json.loads(derivatives) if isinstance(derivatives, str) else derivatives  # a text in .mat files


def _read(part: Mapping[str, Any], name: str, shape: tuple[int, ...], convert: Convert = finite_array) -> FloatArray:
    return restore_shape(convert(part[name], name), name, shape)


def _write_discrete(discrete: LinearModel) -> dict[str, Any]:
    arrays = {name: getattr(discrete, name) for name in DISCRETE}
    _require_finite(arrays, "discrete model", "Linearize again with another step=.")
    errors = {name: getattr(discrete.errors, name) for name in DISCRETE[:4]}
    return {**arrays, "errors": errors, "sample_time": float(discrete.sample_time)}


def _read_discrete(part: Mapping[str, Any], linear: LinearModel) -> LinearModel:
    """Return the discrete model in the coordinates of the continuous one."""
    arrays: dict[str, Any] = {name: _read(part, name, getattr(linear, name).shape) for name in DISCRETE}
    errors = {name: _read(part["errors"], name, arrays[name].shape, real_array) for name in DISCRETE[:4]}
    sample_time = read_number(part["sample_time"])
    if not 0 < sample_time < float("inf"):
        raise ValueError(f"the sample time of the discrete model is {sample_time:g} s")
    discrete = replace(linear, **arrays, sample_time=sample_time, descriptor=None, derivatives={})
    return with_errors(discrete, replace(linear.errors, **errors))


def write_derivative(derivative: Derivative) -> dict[str, Any]:
    """Return the matrices and shifts of a derivative by a parameter as arrays, and its value."""
    errors = {name: getattr(derivative.errors, name) for name in DERIVATIVE[:4]}
    return {name: getattr(derivative, name) for name in (*DERIVATIVE, "value")} | {"errors": errors}


def read_derivatives(parts: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Derivative]:
    """Return derivatives by the name of the parameter, for a model with so many signals in each group."""
    shapes = {name: tuple(sizes[axis] for axis in MATRICES[name]) for name in DERIVATIVE[:4]}
    shapes |= {"states": (sizes["full_states"],), "inputs": (sizes["inputs"],)}
    derivatives = {}
    for name, part in parts.items():
        arrays: dict[str, Any] = {key: _read(part, key, shape) for key, shape in shapes.items()}
        errors = {key: _read(part["errors"], key, shapes[key], real_array) for key in DERIVATIVE[:4]}
        derivatives[str(name)] = Derivative(**arrays, value=read_number(part["value"]), errors=MatrixErrors(**errors))
    return derivatives


def _write_descriptor(descriptor: Descriptor) -> dict[str, Any]:
    arrays = {name: getattr(descriptor, name) for name in DESCRIPTOR}
    _require_finite(arrays, "descriptor system", "Linearize again at a point where the model is defined.")
    names = {group: list(getattr(descriptor, group)) for group in ("states", "inputs", "outputs")}
    return {**arrays, **names, "order": int(descriptor.order), "difference": float(descriptor.difference)}


def _read_descriptor(part: Mapping[str, Any]) -> Descriptor:
    names: dict[str, Any] = {group: tuple(read_texts(part[group])) for group in ("states", "inputs", "outputs")}
    arrays: dict[str, Any] = {}
    for name, axes in DESCRIPTOR.items():
        label = f"{name} of the descriptor system"
        arrays[name] = restore_shape(finite_array(part[name], label), label, tuple(len(names[axis]) for axis in axes))
    order, difference = int(read_number(part["order"])), read_number(part["difference"])
    return Descriptor(**arrays, **names, order=order, difference=difference)


def _require_finite(arrays: Mapping[str, FloatArray], owner: str, advice: str) -> None:
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise UsageError(
                f"The matrix {name} of the {owner} contains NaN or infinite entries, which cannot be saved. {advice}"
            )


def descriptor_to_arrays(descriptor: Descriptor) -> Record:
    """Return everything in a descriptor system."""
    part = _write_descriptor(descriptor)
    arrays = {name: Labelled(part.pop(name), axes) for name, axes in DESCRIPTOR.items()}
    return Record("", arrays, part, top_level=(*DESCRIPTOR, *part))


def descriptor_from_arrays(stored: Stored, origin: str) -> Descriptor:
    """Return the descriptor system that :func:`descriptor_to_arrays` described.

    A descriptor system carries no diagnostics: a warning about the file goes to the logger ``fmilin.files``.
    """
    for remark in list_remarks(stored.integrity):
        logger.warning("'%s': %s", origin, remark.message)
    with describe_restore_errors(origin):
        return _read_descriptor({**stored.facts, **stored.arrays})
