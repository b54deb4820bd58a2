"""MATLAB 5 files, which MATLAB, Octave and SciPy read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.descriptor import Descriptor
    from fmilin.linear_model.model import LinearModel
    from fmilin.periodic.model import PeriodicModel


@register
class LinearModelMat(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".mat"
    audience = "MATLAB, Octave and SciPy"
    content = "`S = load('plant.mat'); sys = ss(S.A, S.B, S.C, S.D)`; names as cell arrays, the rest in `S.fmilin`"
    position = 10
    is_complete = True
    is_readable = True

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.linear_arrays import dumps_mat

        return dumps_mat(result)

    def loads(self, content: bytes, origin: str) -> LinearModel:
        from fmilin.export.linear_arrays import loads_mat

        return loads_mat(content, origin)


@register
class FamilyMat(Codec["LinearFamily"]):
    holds = "family"
    suffix = ".mat"
    audience = "MATLAB and Octave"
    content = "arrays with the grid behind, and offsets as the LPV System block wants them"
    position = 20
    is_complete = True
    is_readable = True

    def dumps(self, result: LinearFamily, writing: Writing) -> bytes:
        from fmilin.export.family_arrays import dumps_mat

        return dumps_mat(result)

    def loads(self, content: bytes, origin: str) -> LinearFamily:
        from fmilin.export.family_arrays import loads_mat

        return loads_mat(content, origin)


@register
class DescriptorMat(Codec["Descriptor"]):
    holds = "descriptor system"
    suffix = ".mat"
    audience = "MATLAB and Octave"
    content = "`S = load('plant.mat'); sys = dss(S.A, S.B, S.C, S.D, S.E)`"
    position = 10
    is_complete = True
    is_readable = True

    def dumps(self, result: Descriptor, writing: Writing) -> bytes:
        from fmilin.export.linear_arrays import dumps_descriptor_mat

        return dumps_descriptor_mat(result)

    def loads(self, content: bytes, origin: str) -> Descriptor:
        from fmilin.export.linear_arrays import loads_descriptor_mat

        return loads_descriptor_mat(content, origin)


@register
class PeriodicModelMat(Codec["PeriodicModel"]):
    holds = "periodic model"
    suffix = ".mat"
    audience = "MATLAB and Octave"
    content = "the same; the phase is the last axis of `A` to `T`"
    position = 20
    is_complete = True
    is_readable = True

    def dumps(self, result: PeriodicModel, writing: Writing) -> bytes:
        from fmilin.export.periodic_file import dumps_mat

        return dumps_mat(result)

    def loads(self, content: bytes, origin: str) -> PeriodicModel:
        from fmilin.export.periodic_file import loads_mat

        return loads_mat(content, origin)
