"""Strict JSON, for any language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import LinearModel
    from fmilin.periodic.model import PeriodicModel


@register
class LinearModelJson(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".json"
    audience = "any language"
    content = "strict JSON, format `fmilin-linear/1`"
    position = 30
    is_complete = True
    is_readable = True

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.document import dumps_json

        return dumps_json(result)

    def loads(self, content: bytes, origin: str) -> LinearModel:
        from fmilin.export.document import loads_json

        return loads_json(content, origin)


@register
class FamilyJson(Codec["LinearFamily"]):
    holds = "family"
    suffix = ".json"
    audience = "any language"
    content = "strict JSON, format `fmilin-family/1`: one object per point"
    position = 40
    is_complete = True
    is_readable = True

    def dumps(self, result: LinearFamily, writing: Writing) -> bytes:
        from fmilin.export.family_json import dumps

        return dumps(result)

    def loads(self, content: bytes, origin: str) -> LinearFamily:
        from fmilin.export.family_json import loads

        return loads(content, origin)


@register
class PeriodicModelJson(Codec["PeriodicModel"]):
    holds = "periodic model"
    suffix = ".json"
    audience = "any language"
    content = "the same, strict JSON, format `fmilin-floquet/1`"
    position = 40
    is_complete = True
    is_readable = True

    def dumps(self, result: PeriodicModel, writing: Writing) -> bytes:
        from fmilin.export.periodic_file import dumps_json

        return dumps_json(result)

    def loads(self, content: bytes, origin: str) -> PeriodicModel:
        from fmilin.export.periodic_file import loads_json

        return loads_json(content, origin)
