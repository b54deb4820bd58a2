"""Plain text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel


@register
class LinearModelText(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".txt"
    audience = "people"
    content = "the table of the terminal, and matrices with six digits"
    position = 90
    description = "a text"

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.for_people import dumps_txt

        return dumps_txt(result)
