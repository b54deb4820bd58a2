"""Archives of NumPy, without pickles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.descriptor import Descriptor
    from fmilin.linear_model.model import LinearModel
    from fmilin.periodic.model import PeriodicModel


@register
class LinearModelNpz(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".npz"
    audience = "NumPy"
    content = "arrays under their names, the rest as JSON text in `fmilin`"
    position = 20
    is_complete = True
    is_readable = True

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.linear_arrays import dumps_npz

        return dumps_npz(result)

    def loads(self, content: bytes, origin: str) -> LinearModel:
        from fmilin.export.linear_arrays import loads_npz

        return loads_npz(content, origin)


@register
class FamilyNpz(Codec["LinearFamily"]):
    holds = "family"
    suffix = ".npz"
    audience = "NumPy"
    content = "arrays with the grid in front, the rest as JSON text in `fmilin`"
    position = 30
    is_complete = True
    is_readable = True

    def dumps(self, result: LinearFamily, writing: Writing) -> bytes:
        from fmilin.export.family_arrays import dumps_npz

        return dumps_npz(result)

    def loads(self, content: bytes, origin: str) -> LinearFamily:
        from fmilin.export.family_arrays import loads_npz

        return loads_npz(content, origin)


@register
class DescriptorNpz(Codec["Descriptor"]):
    holds = "descriptor system"
    suffix = ".npz"
    audience = "NumPy"
    content = "arrays under their names"
    position = 20
    is_complete = True
    is_readable = True

    def dumps(self, result: Descriptor, writing: Writing) -> bytes:
        from fmilin.export.linear_arrays import dumps_descriptor_npz

        return dumps_descriptor_npz(result)

    def loads(self, content: bytes, origin: str) -> Descriptor:
        from fmilin.export.linear_arrays import loads_descriptor_npz

        return loads_descriptor_npz(content, origin)


@register
class PeriodicModelNpz(Codec["PeriodicModel"]):
    holds = "periodic model"
    suffix = ".npz"
    audience = "NumPy"
    content = "the same; the phase is the first axis"
    position = 30
    is_complete = True
    is_readable = True

    def dumps(self, result: PeriodicModel, writing: Writing) -> bytes:
        from fmilin.export.periodic_file import dumps_npz

        return dumps_npz(result)

    def loads(self, content: bytes, origin: str) -> PeriodicModel:
        from fmilin.export.periodic_file import loads_npz

        return loads_npz(content, origin)
