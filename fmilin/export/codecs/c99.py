"""C99 files for microcontrollers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.design.estimation.estimator import Estimator
    from fmilin.export.c_file import LimitedSchedule
    from fmilin.linear_model.model import DelayedLinearModel, LinearModel


@register
class LinearModelC(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".c"
    audience = "microcontrollers"
    content = "[one C99 file](c_code.md) that runs it in steps, without a heap"
    position = 60
    description = "a program"
    choices = ("name", "deviation", "precision")

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.c_file import dumps

        return dumps(result, writing)


@register
class DelayedModelC(Codec["DelayedLinearModel"]):
    holds = "delayed linear model"
    suffix = ".c"
    audience = "microcontrollers"
    content = "[one C99 file](c_code.md) that runs it in steps, with a ring buffer for each delay"
    position = 30
    description = "a program"
    choices = ("name", "deviation", "precision")

    def dumps(self, result: DelayedLinearModel, writing: Writing) -> bytes:
        from fmilin.export.delayed_c_file import dumps

        return dumps(result, writing)


@register
class EstimatorC(Codec["Estimator"]):
    holds = "estimator"
    suffix = ".c"
    audience = "microcontrollers"
    content = "[one C99 file](c_code.md)"
    position = 10
    choices = ("name", "precision")

    def dumps(self, result: Estimator, writing: Writing) -> bytes:
        from fmilin.export.estimator_c import dumps

        return dumps(result, writing)


@register
class ScheduleC(Codec["LimitedSchedule"]):
    holds = "schedule"
    suffix = ".c"
    audience = "microcontrollers"
    content = "[one C99 file](c_code.md)"
    position = 10
    choices = ("name", "precision")

    def dumps(self, result: LimitedSchedule, writing: Writing) -> bytes:
        from fmilin.export.c_file import dumps_schedule

        return dumps_schedule(result, writing)
