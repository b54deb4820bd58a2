"""Second ways of numbers that stand in a file only: eigenvalues, which are computed anew when a file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.auditing.audit_result import Audit, AuditRow, select_worst
from fmilin.auditing.linear_model_audit import compare_spectrum
from fmilin.export.container import Container
from fmilin.families.family import LinearFamily
from fmilin.formats import find_codec
from fmilin.linear_model.model import LinearModel
from fmilin.support.files import read_file

Spectra = dict[int, NDArray[np.complex128]]  # by the number of the point; 0 of a linear model
WAY = "A in the file"


def audit_stored_spectra(path: str | Path, result: LinearModel | LinearFamily) -> Audit:
    """Return the audit of the eigenvalues that a file states, against the matrices in it; without rows where none."""
    spectra = read_spectra(Path(path), result)
    models = {0: result} if isinstance(result, LinearModel) else dict(result.good())
    rows: list[AuditRow] = []
    for number, spectrum in spectra.items():
        if number not in models:
            continue
        location = "" if isinstance(result, LinearModel) else f" of point {number}"
        rows += compare_spectrum(models[number], spectrum, WAY, location=f" in the file{location}")
    worst = select_worst(rows)
    name = result.model.name if isinstance(result, LinearModel) else result.template.model.name
    return Audit("file", name, () if worst is None else (worst,))


def read_spectra(path: Path, result: LinearModel | LinearFamily) -> Spectra:
    """Return the eigenvalues that stand in a file; nothing where its format does not have them."""
    codec = find_codec(path, result.file_kind)
    if not isinstance(codec, Container):
        return {}
    stored = codec.decode(read_file(path))
    if "points" in stored.facts:
        return _collect({k: point.get("eigenvalues") for k, point in enumerate(stored.facts["points"])})
    values = stored.arrays.get("eigenvalues")
    if isinstance(result, LinearModel):
        return _collect({0: values})
    table = np.asarray([] if values is None else values)
    if "eigenvalues" in stored.behind and table.ndim > 1:  # MATLAB has the modes first
        table = np.moveaxis(table, 0, -1)
    if table.shape[:-1] == (*result.shape, result.template.order):  # pairs of real and imaginary parts
        table = table[..., 0] + 1j * table[..., 1]
    if not table.size or table.size != result.template.order * len(result):
        return {}
    return _collect(dict(enumerate(table.reshape(len(result), result.template.order))))


def _collect(values: dict[int, Any]) -> Spectra:
    """Return arrays of complex numbers, also of pairs [re, im]; nothing where a value is not finite."""
    spectra: Spectra = {}
    for number, value in values.items():
        if value is None:
            continue
        try:
            array = np.asarray(value)
            pairs = array.ndim == 2 and array.shape[1] == 2 and not np.iscomplexobj(array)
            flat = array[:, 0] + 1j * array[:, 1] if pairs else array.reshape(-1)
            spectrum = np.asarray(flat, dtype=np.complex128)
        except (TypeError, ValueError):
            continue
        if np.isfinite(spectrum).all():
            spectra[number] = spectrum
    return spectra
