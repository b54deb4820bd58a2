"""MATLAB 5 files, which MATLAB, Octave and SciPy read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fmilin.export.container import Container, Content, register_container

if TYPE_CHECKING:
    from fmilin.export.record import Record, Stored


@register_container
class Mat(Container):
    suffix = ".mat"
    limits = " (MATLAB 5 to 7, not 7.3)"
    contents = (
        Content(
            "linear model",
            10,
            "MATLAB, Octave and SciPy",
            "`S = load('plant.mat'); sys = ss(S.A, S.B, S.C, S.D)`; names as cell arrays, the rest in `S.fmilin`",
        ),
        Content(
            "family",
            20,
            "MATLAB and Octave",
            "arrays with the grid axes last, and offsets as the LPV System block takes them",
        ),
        Content(
            "descriptor system",
            10,
            "MATLAB and Octave",
            "`S = load('plant.mat'); sys = dss(S.A, S.B, S.C, S.D, S.E)`",
        ),
        Content("periodic model", 20, "MATLAB and Octave", "the same; the phase is the last axis of `A` to `T`"),
    )

    def encode(self, record: Record) -> bytes:
        from fmilin.export.mat_file import encode

        return encode(record)

    def decode(self, content: bytes) -> Stored:
        from fmilin.export.mat_file import decode

        return decode(content)

    def loads(self, content: bytes, origin: str) -> Any:
        """Read a file; Dymola's linear models, which are MAT-files of version 4, under any name that ends in .mat."""
        from fmilin.export.foreign import is_dslin, loads_dslin

        if self.holds == "linear model" and is_dslin(content):
            return loads_dslin(content, origin)
        return super().loads(content, origin)
