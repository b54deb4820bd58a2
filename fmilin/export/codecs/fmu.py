"""FMUs that run linear models, estimators and gain schedules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.design.estimation.estimator import Estimator
    from fmilin.export.c_file import LimitedSchedule
    from fmilin.linear_model.model import DelayedLinearModel, LinearModel


@register
class LinearModelFmu(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".fmu"
    audience = "simulation tools"
    content = "an FMU 2.0 or 3.0 that runs the linear model by itself, [see below](#linear-models-as-fmus)"
    position = 40
    choices = ("name", "deviation", "fmi", "platforms")
    is_readable = True

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.fmu_file import dumps

        return dumps(result, writing)

    def loads(self, content: bytes, origin: str) -> LinearModel:
        from fmilin.export.fmu_file import loads

        return loads(content, origin)

    def recognizes(self, path: Path) -> bool:
        """Whether this FMU was written from a linear model. Other FMUs are models to linearize."""
        from fmilin.export.fmu_file import holds_linear_model

        return holds_linear_model(path)


@register
class DelayedModelFmu(Codec["DelayedLinearModel"]):
    holds = "delayed linear model"
    suffix = ".fmu"
    audience = "simulation tools"
    content = "an FMU 2.0 or 3.0 for co-simulation that takes a step every sample, with a ring buffer for each delay"
    position = 40
    choices = ("name", "deviation", "fmi")

    def dumps(self, result: DelayedLinearModel, writing: Writing) -> bytes:
        from fmilin.export.delayed_c_file import dumps_fmu

        return dumps_fmu(result, writing)


@register
class EstimatorFmu(Codec["Estimator"]):
    holds = "estimator"
    suffix = ".fmu"
    audience = "simulation tools"
    content = "an FMU 2.0 or 3.0 around it"
    position = 20
    choices = ("name", "precision", "fmi")

    def dumps(self, result: Estimator, writing: Writing) -> bytes:
        from fmilin.export.estimator_c import dumps_fmu

        return dumps_fmu(result, writing)


@register
class ScheduleFmu(Codec["LimitedSchedule"]):
    holds = "schedule"
    suffix = ".fmu"
    audience = "simulation tools"
    content = "an FMU 2.0 or 3.0 around it"
    position = 20
    choices = ("name", "precision", "fmi")

    def dumps(self, result: LimitedSchedule, writing: Writing) -> bytes:
        from fmilin.export.c_file import dumps_schedule_fmu

        return dumps_schedule_fmu(result, writing)
