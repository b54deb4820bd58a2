"""LaTeX, to be read into a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel


@register
class LinearModelLatex(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".tex"
    audience = "LaTeX"
    content = "matrices and modes with six digits, for `\\input{plant}`"
    position = 80
    description = "a text"

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.for_people import dumps_tex

        return dumps_tex(result)
