"""The documentation site: ``sphinx-build -W -n docs SITE``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fmilin.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "fmilin"
author = "The fmilin developers"
copyright = author  # noqa: A001 - as Sphinx calls it
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"fmilin {__version__}"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # an example's README begins where the page's own heading ends

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say types with shapes and units
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# Types in docstrings are words and shapes, not names of classes that could be looked up.
nitpick_ignore_regex = [("py:(class|data|obj|exc)", ".*"), ("py:mod", r"fmilin\..*")]


def setup(app: Sphinx) -> None:
    """Read docstrings before Napoleon does, which takes all but the last of several attributes' names for a type."""
    app.connect("autodoc-process-docstring", _names_without_blanks, priority=400)


def _names_without_blanks(
    _app: Sphinx, _what: str, _name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    lines[:] = [re.sub(r"^\w+(, \w+)+(?= : )", lambda names: names[0].replace(", ", ","), line) for line in lines]
