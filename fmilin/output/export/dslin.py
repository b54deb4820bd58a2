"""The linear model as Dymola's ``dslin.mat``: what its ``linearizeModel`` leaves, and Modelica_LinearSystems2 reads.

A MAT-file of version 4 with three variables: ``ABCD`` = [A B; C D], the number of states ``nx``, and a matrix of
characters ``xuyName`` with the names of states, inputs and outputs in its rows. It knows no operating point, no
units and no sample time. Names are stored in UTF-8, as Dymola does; blanks at their ends get lost.
"""

from __future__ import annotations

import io
import struct
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import FmilinError, ModelError, UsageError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray, Signals
from fmilin.linear_model.model import Accuracy, LinearModel, Method, Point
from fmilin.model.interface import ModelInfo
from fmilin.output.export.archives import finite_array
from fmilin.output.export.document import to_document

_DOUBLES, _TEXT = 0, 51  # types of MAT-file 4: little-endian, full matrix of doubles; text of one byte per character


def dumps(linear: LinearModel) -> bytes:
    """Return the file's content."""
    to_document(linear)  # refuses what no file should carry
    if linear.sample_time > 0:
        raise UsageError(
            f"The model is sampled every {linear.sample_time:g} s, and dslin.mat has no place to say so: it would be "
            "taken for a continuous one. Convert the continuous model, or use .mat, .m or .mo."
        )
    names = [name.encode("utf-8") for name in (*linear.states.names, *linear.inputs.names, *linear.outputs.names)]
    width = max(map(len, names), default=0)
    rows = np.array([list(name.ljust(width)) for name in names], dtype=np.uint8).reshape(len(names), width)
    ABCD = np.block([[linear.A, linear.B], [linear.C, linear.D]])
    return b"".join(
        (_variable("ABCD", ABCD), _variable("nx", np.array([[float(len(linear.states))]])), _variable("xuyName", rows))
    )


def is_dslin(content: bytes) -> bool:
    """Whether this looks like a file of :func:`dumps` or of Dymola: a small MAT-file that names all three."""
    return all(name in content for name in (b"ABCD\0", b"nx\0", b"xuyName\0")) and content[:6] != b"MATLAB"


def loads(content: bytes, origin: str) -> LinearModel:
    """Read a ``dslin.mat``; the operating point, which it does not have, counts as zero."""
    from scipy.io import loadmat

    try:
        top: dict[str, Any] = loadmat(io.BytesIO(content))  # type: ignore[arg-type]  # the stubs forgot open files
        names = [_name(row) for row in np.ravel(top["xuyName"])]
        return _linear_model(finite_array(top["ABCD"], "ABCD"), top["nx"], names, origin)
    except (FmilinError, ValueError) as error:
        raise ModelError(f"'{origin}' is no dslin.mat that fmilin reads: {error}") from None
    except Exception as error:  # noqa: BLE001 - SciPy raises whatever a damaged file leads to
        raise ModelError(f"'{origin}' is no dslin.mat that fmilin reads: {error!r}.") from None


def _linear_model(ABCD: FloatArray, nx: FloatArray, names: list[str], origin: str) -> LinearModel:
    n, (rows, columns) = int(np.ravel(nx)[0]), ABCD.shape
    n_u, n_y = columns - n, rows - n
    if n < 0 or n_u < 0 or n_y < 0 or len(names) != n + n_u + n_y:
        raise ModelError(f"a matrix of {rows} x {columns}, {n} states and {len(names)} names do not fit.")
    states, inputs, outputs = (Signals(part) for part in (names[:n], names[n : n + n_u], names[n + n_u :]))
    text = "The file has no operating point: all values are deviations, and the accuracy is unknown."
    return LinearModel(
        A=ABCD[:n, :n].copy(),
        B=ABCD[:n, n:].copy(),
        C=ABCD[n:, :n].copy(),
        D=ABCD[n:, n:].copy(),
        T=np.eye(n),
        f0=np.zeros(n),
        states=states,
        full_states=states,
        inputs=inputs,
        outputs=outputs,
        y0=np.zeros(n),
        point=Point(0.0, *(dict.fromkeys(group.names, 0.0) for group in (states, inputs, outputs))),
        accuracy=Accuracy(*[float("nan")] * 8),
        method=Method("unknown", "unknown", 0),
        model=ModelInfo(PurePath(origin).name.removesuffix(".mat")),
        warnings=(Remark("point", text),),
    )


def _name(row: str) -> str:
    text = str(row).rstrip(" \0")
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _variable(name: str, matrix: NDArray[Any]) -> bytes:
    text = matrix.dtype == np.uint8
    head = struct.pack("<5i", _TEXT if text else _DOUBLES, *matrix.shape, 0, len(name) + 1)
    data = matrix if text else matrix.astype("<f8")
    return head + name.encode("ascii") + b"\0" + data.tobytes(order="F")
