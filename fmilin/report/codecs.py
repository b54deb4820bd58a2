"""Codecs of pictures and pages. They are registered when ``fmilin.report`` is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import LinearModel
    from fmilin.models.mechanism.description import MechanismDescription
    from fmilin.periodic.chart import FloquetChart
    from fmilin.periodic.model import PeriodicModel


@register
class PicturePng(Codec["Figure"]):
    holds = "picture"
    suffix = ".png"
    audience = "screens"
    content = "pixels"
    position = 10

    def dumps(self, result: Figure, writing: Writing) -> bytes:
        from fmilin.report.figures import rendered

        return rendered(result, self.suffix)


@register
class PictureSvg(Codec["Figure"]):
    holds = "picture"
    suffix = ".svg"
    audience = "print"
    content = "lines and text"
    position = 20

    def dumps(self, result: Figure, writing: Writing) -> bytes:
        from fmilin.report.figures import rendered

        return rendered(result, self.suffix)


@register
class MotionPictureGif(Codec["tuple[MechanismDescription, LinearModel]"]):
    holds = "motion picture"
    suffix = ".gif"
    audience = "screens"
    content = "a mechanism that moves in its modes"
    position = 10

    def dumps(self, result: tuple[MechanismDescription, LinearModel], writing: Writing) -> bytes:
        from fmilin.report.mechanism_picture import mechanism_motion

        description, linear = result
        return mechanism_motion(description, linear)


@register
class PageHtml(Codec["LinearModel | LinearFamily | PeriodicModel | FloquetChart"]):
    holds = "page"
    suffix = ".html"
    audience = "browsers"
    content = "tables and pictures in one file: `fmilin report`"
    position = 10

    def dumps(self, result: LinearModel | LinearFamily | PeriodicModel | FloquetChart, writing: Writing) -> bytes:
        from fmilin.report.web import report_html

        return report_html(result).encode("utf-8")


@register
class PageHtm(PageHtml):
    suffix = ".htm"
    content = "the same"
    position = 20
