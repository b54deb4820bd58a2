"""Codecs of pictures and pages. They are registered when ``fmilin.report`` is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.report.figures import Picture
    from fmilin.report.mechanism_picture import MovingMechanism
    from fmilin.report.web import Report


@register
class PicturePng(Codec["Picture"]):
    holds = "picture"
    suffix = ".png"
    audience = "screens"
    content = "pixels"
    position = 10

    def dumps(self, result: Picture, writing: Writing) -> bytes:
        from fmilin.report.figures import render_figure

        return render_figure(result.figure, self.suffix, result.dpi)


@register
class PictureSvg(Codec["Picture"]):
    holds = "picture"
    suffix = ".svg"
    audience = "print"
    content = "lines and text"
    position = 20

    def dumps(self, result: Picture, writing: Writing) -> bytes:
        from fmilin.report.figures import render_figure

        return render_figure(result.figure, self.suffix, result.dpi)


@register
class MotionPictureGif(Codec["MovingMechanism"]):
    holds = "motion picture"
    suffix = ".gif"
    audience = "screens"
    content = "a mechanism that moves in its modes"
    position = 10

    def dumps(self, result: MovingMechanism, writing: Writing) -> bytes:
        from fmilin.report.mechanism_picture import mechanism_motion

        return mechanism_motion(result.description, result.linear, numbers=result.numbers)


@register
class PageHtml(Codec["Report"]):
    holds = "page"
    suffix = ".html"
    audience = "browsers"
    content = "tables and pictures in one file: `fmilin report`"
    position = 10

    def dumps(self, result: Report, writing: Writing) -> bytes:
        from fmilin.report.web import report_html

        return report_html(result.result, result.verification, result.model).encode("utf-8")


@register
class PageHtm(PageHtml):
    suffix = ".htm"
    content = "the same"
    position = 20
