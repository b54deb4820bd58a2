"""Labelled spectra of constrained coordinates as JSON documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fmilin.model.interface import Model, OperatingPoint
from fmilin.native.formulations import Spectrum
from fmilin.output.export.json_file import text_of


def spectrum_text(name: str, spectrum: Spectrum) -> str:
    """Return the spectrum of what has this name, format ``fmilin-spectrum/1``."""
    return text_of({"format": "fmilin-spectrum/1", "model": name, **_document(spectrum)})


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
        "spectra": [_document(spectrum) for spectrum in spectra],
    }
    return text_of(document)


def _document(spectrum: Spectrum) -> dict[str, Any]:
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
