"""URDF files as they are found: what other tools read over is mended before the file is read, and said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fmilin.ground.errors import ModelError

_DECLARATION = re.compile(rb"<\?xml(?=\s)([^>]*)\?>")
_LOOKED_INTO = 4096  # bytes in which a declaration may stand
_BEFORE = re.compile(rb"\s*(?:<!--.*?-->\s*)*", re.DOTALL)  # what may stand before it
_FIRST_COUNTS = {"link": ("inertial",), "inertial": ("origin", "mass", "inertia"), "joint": ("origin", "axis", "dynamics", "mimic")}  # noqa: E501  # fmt: skip
_PRODUCTS = ("ixy", "ixz", "iyz")


def mended_root(path: Path) -> tuple[Any, tuple[str, ...]]:
    """Return the root element of a URDF file, and what had to be mended in it, in words."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True,
                             remove_pis=True)  # fmt: skip
    mended: list[str] = []
    try:
        root = etree.fromstring(_declared_first(path.read_bytes(), mended), parser)
    except OSError as error:
        raise ModelError(f"The URDF file '{path}' cannot be read: {error.strerror or error}.") from None
    except etree.XMLSyntaxError as error:
        what = " ".join(str(error.msg).split()).replace(" ,", ",")
        raise ModelError(f"The URDF file '{path}' is no well-formed XML: {what}. Correct it there.") from None
    _without_namespace(root, mended)
    for element in root.iter(*_FIRST_COUNTS):
        _keep_first(element, mended)
    for inertia in root.iterfind("link/inertial/inertia"):
        _complete(inertia, mended)
    return root, tuple(mended)


def _declared_first(content: bytes, mended: list[str]) -> bytes:
    """Return a file whose XML declaration is its beginning and of version 1.0; lines keep their numbers."""
    declaration = _DECLARATION.search(content[:_LOOKED_INTO])
    if declaration is None:
        return content
    before = content[: declaration.start()].removeprefix(b"\xef\xbb\xbf")
    version = re.search(rb"""version\s*=\s*["']([^"']*)""", declaration[1])
    right = version is not None and version[1].startswith(b"1.")
    if (right and not before) or not _BEFORE.fullmatch(before):
        return content
    if before:
        mended.append(f"the XML declaration stands on line {before.count(10) + 1}, behind other text")
    if not right:
        mended.append(
            f"the XML declaration says version {version[1].decode('ascii', 'replace') if version else 'none'}"
        )
    encoding = re.search(rb"""encoding\s*=\s*["']([\w.-]+)""", declaration[1])
    first = b'<?xml version="1.0" encoding="' + (encoding[1] if encoding else b"UTF-8") + b'"?>'
    return first + before + content[declaration.end() :]


def _without_namespace(root: Any, mended: list[str]) -> None:
    """Give the elements of the root's own namespace the names that URDF knows."""
    if not root.tag.startswith("{") or not root.tag.endswith("}robot"):
        return
    prefix = root.tag.removesuffix("robot")
    mended.append(f"<robot> has the namespace '{prefix[1:-1]}'")
    for element in root.iter(f"{prefix}*"):
        element.tag = element.tag.removeprefix(prefix)


def _keep_first(element: Any, mended: list[str]) -> None:
    """Leave the first of several elements of which one has a meaning, as the readers of robots do."""
    for tag in _FIRST_COUNTS[element.tag]:
        for again in element.findall(tag)[1:]:
            mended.append(f"{_described(element)} has <{tag}> again in line {again.sourceline}, the first one counts")
            element.remove(again)


def _complete(inertia: Any, mended: list[str]) -> None:
    """Take products of inertia that are left out for zero."""
    missing = [name for name in _PRODUCTS if inertia.get(name) is None]
    if missing:
        link = _described(inertia.getparent().getparent())
        mended.append(f"{link} has no {', '.join(missing)} in line {inertia.sourceline}, taken for 0")
    for name in missing:
        inertia.set(name, "0")


def _described(element: Any) -> str:
    name = element.get("name")
    return f"<{element.tag}>" if not name else f"the {element.tag} '{name}'"
