"""Functions of MATLAB and Octave that return models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import DelayedLinearModel, LinearModel
    from fmilin.trimming.uncertainty import Uncertain


@register
class LinearModelFunction(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".m"
    audience = "a function of MATLAB and Octave"
    content = "returns `ss` with names, units, point and offsets; of several models an array with its grid"
    position = 50
    description = "a program"
    choices = ("name",)

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.m_file import dumps

        return dumps(result, writing)


@register
class SimulinkScript(Codec["LinearModel"]):
    holds = "linear model"
    suffix = "_simulink.m"
    audience = "Simulink"
    content = "a script that builds a Simulink model: State-Space block with offsets, scope, logged signals"
    position = 55
    description = "a program"
    choices = ("name",)

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.simulink_file import dumps

        return dumps(result, writing)


@register
class DelayedModelFunction(Codec["DelayedLinearModel"]):
    holds = "delayed linear model"
    suffix = ".m"
    audience = "a function of MATLAB"
    content = "returns `ss` with internal delays (`setDelayModel`), with names, units, point and offsets"
    position = 10
    description = "a program"
    choices = ("name",)

    def dumps(self, result: DelayedLinearModel, writing: Writing) -> bytes:
        from fmilin.export.m_file import dumps_delayed

        return dumps_delayed(result, writing)


@register
class FamilyFunction(Codec["LinearFamily"]):
    holds = "family"
    suffix = ".m"
    audience = "a function of MATLAB and Octave"
    content = "returns an array of models with its grid"
    position = 50
    description = "a program"
    choices = ("name",)

    def dumps(self, result: LinearFamily, writing: Writing) -> bytes:
        from fmilin.export.m_file import dumps_family

        return dumps_family(result, writing)


@register
class UncertainFunction(Codec["Uncertain"]):
    holds = "uncertain model"
    suffix = ".m"
    audience = "a function of MATLAB"
    content = "builds a `uss` with a `ureal` for each parameter: `u.save`"
    position = 10
    description = "a program"
    choices = ("name",)

    def dumps(self, result: Uncertain, writing: Writing) -> bytes:
        from fmilin.export.m_file import dumps_uncertain

        return dumps_uncertain(result, writing)
