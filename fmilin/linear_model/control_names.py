"""Names of signals as python-control accepts them, and back.

python-control (0.10) refuses '.' in the names of signals and systems because ``system.signal`` is how
it addresses them; it reads a leading '-' as a change of sign, and ``name[1:3]`` as a range. Names from
Modelica are full of dots. ``legal_name`` writes a dot as '/', and the few other characters that
would be misread as a percent sign and two hexadecimal digits; :func:`original_name` undoes it. Different
names stay different.

>>> legal_name("body.frame_a.r[1]")
'body/frame_a/r[1]'
>>> original_name("body/frame_a/r[1]")
'body.frame_a.r[1]'
"""

from __future__ import annotations

import re

# '/' and '%' are escaped because they are the marks of the code itself; what is below ' ' would break a printout.
_UNSAFE = re.compile(r"^-|[./%:\x00-\x1f]")
_MARKED = re.compile(r"/|%([0-9A-F]{2})")


def legal_name(name: str) -> str:
    """Return ``name`` as python-control accepts it."""
    return _UNSAFE.sub(lambda m: "/" if m.group() == "." else f"%{ord(m.group()):02X}", name)


def original_name(name: str) -> str:
    """Return the model's own name of a signal, state or system that ``legal_name`` made legal."""
    return _MARKED.sub(lambda m: "." if m.group() == "/" else chr(int(m.group(1), 16)), name)
