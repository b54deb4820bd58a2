"""Linear models as plain data with the names of the format ``fmilin-linear/1``, and as strict JSON; spectra, too.

JSON is ASCII; numbers have the shortest text that reads back as the same double, and NaN and infinity are ``null``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, ModelError, UsageError
from fmilin.export.archives import finite_array, real_array
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.descriptor import Derivative, Descriptor, LazyDescriptor, MatrixErrors
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearizationMethod, LinearizationPoint, LinearModel
from fmilin.linear_model.no_response import assess_stability
from fmilin.model.interface import ModelInfo
from fmilin.numerics.eigenvalue_errors import estimate_eigenvalues
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.version import __version__

if TYPE_CHECKING:
    from fmilin.formulations import Spectrum
    from fmilin.model.interface import Model, OperatingPoint

FORMAT = "fmilin-linear/1"
MATRICES = {
    "A": ("states", "states"),
    "B": ("states", "inputs"),
    "C": ("outputs", "states"),
    "D": ("outputs", "inputs"),
    "T": ("full_states", "states"),
    "T_u": ("full_states", "inputs"),
}
"""Which signals the rows and the columns of each matrix belong to."""

ERRORS = ("A", "B", "C", "D", "T")  # matrices that have an error estimate for every entry
GROUPS = ("states", "full_states", "inputs", "outputs")  # the four lists of names
POINT_PARTS = ("states", "inputs", "outputs", "parameters")  # what a point has values of, by name
DERIVATIVE = ("A", "B", "C", "D", "states", "inputs")  # arrays of a derivative by a parameter
DESCRIPTOR = ("E", "A", "B", "C", "D", "f0")  # arrays of a descriptor system
NAMES = ("states", "inputs", "outputs")  # its lists of names
DISCRETE = ("A", "B", "C", "D", "f0")  # arrays of the discrete model inside a co-simulation FMU
METHOD = {"derivatives": str, "coordinates": str, "evaluations": int, "products": int}  # the fields, in their order


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
    for name in (*MATRICES, "f0", "y0"):
        if not np.isfinite(getattr(linear, name)).all():
            raise UsageError(
                f"The matrix {name} contains NaN or infinite entries, which no file should carry. "
                f"Linearize again at a point where the model is defined."
            )
    if nul := [s.name for group in GROUPS for s in getattr(linear, group) if "\0" in s.name]:
        raise UsageError(f"The name {nul[0]!r} contains the character NUL, which no file format here can carry.")
    _require_texts(linear)


def to_document(linear: LinearModel) -> dict[str, Any]:
    """Return everything in ``linear`` under the format's names: matrices of doubles, f0, y0 and eigenvalues (P,)."""
    require_writable(linear)
    document: dict[str, Any] = {name: getattr(linear, name) for name in (*MATRICES, "f0", "y0")}
    groups: dict[str, Signals] = {group: getattr(linear, group) for group in GROUPS}
    document["errors"] = {name: getattr(linear.errors, name) for name in ERRORS}
    document |= {group: list(signals.names) for group, signals in groups.items()}
    document["units"] = {s.name: s.unit for group in GROUPS for s in groups[group]}
    estimates = estimate_eigenvalues(linear.A, linear.errors.A, sampled=linear.sample_time > 0)
    document["eigenvalues"], document["eigenvalue_errors"] = estimates.values, estimates.errors
    document["point"] = {"time": float(linear.point.time)} | {
        part: {name: float(value) for name, value in getattr(linear.point, part).items()} for part in POINT_PARTS
    }
    document["accuracy"] = {name: float(value) for name, value in asdict(linear.accuracy).items()}
    document["method"] = asdict(linear.method)
    document["model"] = asdict(linear.model)
    document["warnings"] = [{"kind": w.kind, "message": w.message} for w in linear.warnings]
    document["equilibrium"] = linear.is_equilibrium  # None: not tested
    stability = assess_stability(linear)
    document["stable"] = None if stability is None else stability.stable  # None, too: cannot be told
    document["sample_time"] = float(linear.sample_time)
    document["signals"] = {group: details_of(signals) for group, signals in groups.items()}
    document["fmilin_version"] = __version__
    # One that was not asked for is not computed for a file: those of Modelica models are large.
    is_pending = isinstance(linear.descriptor, LazyDescriptor) and not linear.descriptor.was_read
    if linear.descriptor is not None and not is_pending:
        document["descriptor"] = to_part(linear.descriptor)
    if linear.derivatives:
        document["derivatives"] = {
            name: derivative_to_part(derivative) for name, derivative in linear.derivatives.items()
        }
    if linear.discrete is not None:
        document["discrete"] = _discrete_part(linear.discrete)
    document["format"] = FORMAT
    return document


def _discrete_part(discrete: LinearModel) -> dict[str, Any]:
    part: dict[str, Any] = {name: getattr(discrete, name) for name in DISCRETE}
    for name, array in part.items():
        if not np.isfinite(array).all():
            raise UsageError(
                f"The matrix {name} of the discrete model contains NaN or infinite entries, which no file should "
                "carry. Linearize again with another step=."
            )
    errors = {name: getattr(discrete.errors, name) for name in DISCRETE[:4]}
    return part | {"errors": errors, "sample_time": float(discrete.sample_time)}


def _read_discrete(part: Mapping[str, Any], linear: LinearModel) -> LinearModel:
    """Return the discrete model in the coordinates of the continuous one."""
    arrays: dict[str, Any] = {name: _array(part, name, getattr(linear, name).shape) for name in DISCRETE}
    errors = {name: _array(part["errors"], name, arrays[name].shape, real_array) for name in DISCRETE[:4]}
    sample_time = _float(part["sample_time"])
    if not 0 < sample_time < float("inf"):
        raise ValueError(f"the sample time of the discrete model is {sample_time:g} s")
    discrete = replace(linear, **arrays, sample_time=sample_time, descriptor=None, derivatives={})
    return with_errors(discrete, replace(linear.errors, **errors))


def derivative_to_part(derivative: Derivative) -> dict[str, Any]:
    """Return the matrices and shifts of a derivative by a parameter as arrays, and its value."""
    errors = {n: getattr(derivative.errors, n) for n in DERIVATIVE[:4]}
    return {n: getattr(derivative, n) for n in (*DERIVATIVE, "value")} | {"errors": errors}


def derivative_from_part(part: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> Derivative:
    """Return the derivative that :func:`derivative_to_part` described."""
    arrays = {name: _array(part, name, shapes[name]) for name in DERIVATIVE}
    errors = {name: _array(part["errors"], name, shapes[name], real_array) for name in DERIVATIVE[:4]}
    return Derivative(**arrays, value=_float(part["value"]), errors=MatrixErrors(**errors))


def _require_texts(linear: LinearModel) -> None:
    texts = [t for group in GROUPS for s in getattr(linear, group) for t in (s.name, s.unit, s.description, *s.aliases)]
    texts += [linear.model.name, linear.model.guid, linear.model.tool, *map(str, linear.warnings)]
    try:
        "\n".join(texts).encode("utf-8")
    except UnicodeEncodeError:
        bad = next(t for t in texts if any("\ud800" <= c <= "\udfff" for c in t))
        raise UsageError(
            f"{bad[:70]!a} is no text: it contains one half of a pair of surrogates, which no file can carry. Give it "
            "another name."
        ) from None


def require_format(document: Mapping[str, Any], origin: str, wanted: str = FORMAT, what: str = "linear model") -> None:
    """Refuse a file of another version, or of something else."""
    if (stated := document.get("format")) != wanted:
        raise ModelError(
            f"'{origin}' is no {what} that this fmilin reads: its field 'format' is {stated!r} instead of '{wanted}'. "
            f"Save it again with fmilin {__version__}."
        )


def from_document(document: Mapping[str, Any], origin: str) -> LinearModel:
    """Return the LinearModel of :func:`to_document`; matrices may be nested lists, a NaN may be None."""
    require_format(document, origin)
    try:
        return _linear_model(document)
    except KeyError as missing:
        raise ModelError(f"'{origin}' is damaged: the field {missing} is missing. Save it again.") from None
    except (FmilinError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"'{origin}' is damaged: {error}. Save it again.") from None


def _linear_model(document: Mapping[str, Any]) -> LinearModel:
    groups: dict[str, Any] = {group: signals_of(document, group) for group in GROUPS}
    sizes = {group: len(signals) for group, signals in groups.items()}
    matrix: dict[str, Any] = {
        name: _array(document, name, (sizes[rows], sizes[columns])) for name, (rows, columns) in MATRICES.items()
    }
    shapes = {n: matrix[n].shape for n in "ABCD"} | {"states": (sizes["full_states"],), "inputs": (sizes["inputs"],)}
    point, method, model = document["point"], document["method"], document["model"]
    values = {part: {str(n): _float(v) for n, v in point[part].items()} for part in POINT_PARTS}
    if not 0 <= (sample_time := _float(document["sample_time"])) < float("inf"):
        raise ValueError(f"the sample time is {sample_time:g} s")
    errors = {name: _array(document["errors"], name, matrix[name].shape, real_array) for name in ERRORS}
    linear = LinearModel(
        **matrix,
        **groups,
        f0=_array(document, "f0", (sizes["states"],)),
        y0=_array(document, "y0", (sizes["states"],)),
        point=LinearizationPoint(_float(point["time"]), **values),
        accuracy=Accuracy(**{f.name: _float(document["accuracy"][f.name]) for f in fields(Accuracy)}),
        method=LinearizationMethod(*(kind(method[name]) for name, kind in METHOD.items())),
        model=ModelInfo(**{f.name: str(model[f.name]) for f in fields(ModelInfo)}),
        warnings=tuple(Remark(str(w["kind"]), str(w["message"]), is_read=True) for w in document["warnings"]),
        sample_time=sample_time,
        errors=EntryErrors(**errors),
        descriptor=None if document.get("descriptor") is None else from_part(document["descriptor"]),
        derivatives={
            str(name): derivative_from_part(part, shapes) for name, part in (document.get("derivatives") or {}).items()
        },
    )
    discrete = document.get("discrete")
    return linear if discrete is None else replace(linear, discrete=_read_discrete(discrete, linear))


def to_part(descriptor: Descriptor) -> dict[str, Any]:
    """Return the matrices as arrays, the names as lists, ``order`` and ``difference``."""
    part: dict[str, Any] = {name: getattr(descriptor, name) for name in DESCRIPTOR}
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
    names: dict[str, Any] = {group: tuple(require_text(n) for n in part[group]) for group in NAMES}
    k, nu, ny = map(len, names.values())
    arrays: dict[str, Any] = {}
    for name, shape in zip(DESCRIPTOR, ((k, k), (k, k), (k, nu), (ny, k), (ny, nu), (k,)), strict=True):
        array = finite_array(part[name], f"{name} of the descriptor system")
        if array.shape != shape and (array.size != np.prod(shape) or (array.size and 1 not in array.shape)):
            raise ValueError(f"{name} of the descriptor system has the shape {array.shape}, but the names say {shape}")
        arrays[name] = array.reshape(shape)
    difference = float("nan") if part["difference"] is None else float(part["difference"])
    return Descriptor(**arrays, **names, order=int(part["order"]), difference=difference)


def require_text(value: object) -> str:
    """Return a name or unit, which must be a text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a name or unit should be")
    return value


def details_of(signals: Signals) -> dict[str, list[Any]]:
    """Return one list per property, in the order of the names."""
    return {
        "unit": [s.unit for s in signals],
        "nominal": [None if s.nominal is None else float(s.nominal) for s in signals],
        "start": [float(s.start) for s in signals],
        "description": [s.description for s in signals],
        "aliases": [list(s.aliases) for s in signals],
        "turn": [s.turn for s in signals],
    }


def signals_of(document: Mapping[str, Any], group: str) -> Signals:
    """Return the signals of a group of names."""
    names: Sequence[str] = document[group]
    details = document["signals"][group]
    columns = [details[key] for key in ("unit", "nominal", "start", "description", "aliases")]
    columns.append(details.get("turn", [None] * len(names)))  # files of earlier versions have none
    signals = []
    for name, unit, nominal, start, text, aliases, turn in zip(names, *columns, strict=True):
        size = None if nominal is None else float(nominal)
        wraps = None if turn is None else float(turn)
        signals.append(Signal(require_text(name), require_text(unit), size, _float(start), text, (*aliases,), wraps))
    return Signals(signals)


Read = Callable[[Any, str], FloatArray]


def _array(document: Mapping[str, Any], name: str, shape: tuple[int, ...], read: Read = finite_array) -> FloatArray:
    """Return a field as an array of ``shape``; only an empty one may lack the shape (a list cannot say (0, 3))."""
    array = read(document[name], name)
    if array.shape == shape:
        return array
    if array.size == 0 and 0 in shape:
        return array.reshape(shape)
    raise ValueError(f"{name} has the shape {array.shape}, but the names say {shape}")


def _float(value: float | None) -> float:
    """Return a number; None stands for NaN in formats that have no NaN."""
    return float("nan") if value is None else float(value)


def dumps_json(linear: LinearModel) -> bytes:
    """Return the file's content: one line per field."""
    document = to_document(linear)
    if linear.derivatives:
        document["eigenvalue_derivatives"] = linear.eigenvalue_derivatives()
    return text_of(document).encode("ascii")


def text_of(document: Mapping[str, Any]) -> str:
    """Return a document as strict JSON in ASCII, one line per field."""
    fields = ",\n".join(f"{json.dumps(k)}: {_value_text(v)}" for k, v in document.items())
    return f"{{\n{fields}\n}}\n"


MOSTLY_ZERO = 0.2  # part of the entries of a matrix that are not zero, up to which its zeros are not formatted singly


def _value_text(value: Any) -> str:
    """Return the JSON of one value, what ``json.dumps`` writes of :func:`plain`.

    The descriptor system of a Modelica model has millions of entries, nearly all of them zero: these are written
    without being converted one by one.
    """
    if isinstance(value, dict) and any(isinstance(item, np.ndarray) for item in value.values()):
        return "{" + ", ".join(f"{json.dumps(str(k))}: {_value_text(item)}" for k, item in value.items()) + "}"
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype == np.float64 and np.isfinite(value).all():
        is_written = (value != 0.0) | np.signbit(value)
        if np.count_nonzero(is_written) <= MOSTLY_ZERO * value.size:
            return "[" + ", ".join(map(_row_text, value, is_written)) + "]"
    return json.dumps(plain(value), allow_nan=False)


def _row_text(row: FloatArray, is_written: NDArray[np.bool_]) -> str:
    texts = ["0.0"] * len(row)
    for j in np.flatnonzero(is_written).tolist():
        texts[j] = repr(float(row[j]))
    return "[" + ", ".join(texts) + "]"


def loads_json(content: bytes, origin: str) -> LinearModel:
    """Read what :func:`dumps_json` wrote."""
    return from_document(object_in(content, origin, "linear model"), origin)


def object_in(content: bytes, origin: str, what: str) -> dict[str, Any]:
    """Return the object that a JSON document is; ``what`` it should be, for messages."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"'{origin}' is no JSON document: {error}.") from None
    if not isinstance(document, dict):
        raise ModelError(f"'{origin}' is no {what}: the document is no object.")
    return document


def plain(value: Any) -> Any:
    """Return arrays as lists, complex numbers as [re, im], what is not finite as None."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        if np.iscomplexobj(value):
            return plain(np.stack((value.real, value.imag), axis=-1))
        return value.tolist() if np.isfinite(value).all() else plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def spectrum_text(name: str, spectrum: Spectrum) -> str:
    """Return the spectrum of what has this name, format ``fmilin-spectrum/1``."""
    return text_of({"format": "fmilin-spectrum/1", "model": name, **_of_spectrum(spectrum)})


def spectra_text(model: Model, point: OperatingPoint, spectra: Sequence[Spectrum]) -> str:
    """Return several spectra of a model at one point, format ``fmilin-spectra/1``."""
    document = {
        "format": "fmilin-spectra/1",
        "model": model.info.name,
        "point": {
            "time": point.time,
            "states": dict(zip(model.states.names, point.states.tolist(), strict=True)),
            "inputs": dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)),
        },
        "spectra": [_of_spectrum(spectrum) for spectrum in spectra],
    }
    return text_of(document)


def _of_spectrum(spectrum: Spectrum) -> dict[str, Any]:
    """Return plain data, None in place of infinite eigenvalues."""
    return {
        "formulation": spectrum.formulation,
        "method": spectrum.method,
        "sizes": dict(spectrum.sizes),
        "eigenvalues": [[s.real, s.imag] if abs(s) < float("inf") else None for s in spectrum.eigenvalues.tolist()],
        "labels": list(spectrum.labels),
        "violations": spectrum.violations.tolist(),
        "errors": spectrum.errors.tolist(),
        "warnings": [{"kind": r.kind, "message": str(r)} for r in spectrum.remarks],
    }
