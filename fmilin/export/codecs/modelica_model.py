"""Modelica models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.linear_model.model import DelayedLinearModel, LinearModel


@register
class LinearModelModelica(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".mo"
    audience = "Modelica"
    content = "one model; connectors, or plain inputs and outputs"
    position = 70
    choices = ("name", "deviation", "modelica")

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.modelica import dumps

        return dumps(result, writing)


@register
class DelayedModelModelica(Codec["DelayedLinearModel"]):
    holds = "delayed linear model"
    suffix = ".mo"
    audience = "Modelica"
    content = "one model with `delay(...)`; connectors, or plain inputs and outputs"
    position = 20
    choices = ("name", "deviation", "modelica")

    def dumps(self, result: DelayedLinearModel, writing: Writing) -> bytes:
        from fmilin.export.modelica import dumps_delayed

        return dumps_delayed(result, writing)
