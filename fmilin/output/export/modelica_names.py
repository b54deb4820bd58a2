"""Names of any model as identifiers of Modelica: legal, different from each other, and still readable.

>>> identifiers(["body.r[1]", "body_r_1", "der(w)", "größe", "φ", "time", "2x"])
['body_r_1_2', 'body_r_1', 'der_w', 'groesse', 'phi', 'time_', 'x_2x']
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

RESERVED = frozenset(
    re.findall(
        r"\w+",
        """algorithm and annotation assert block break class connect connector constant constrainedby der discrete each
        else elseif elsewhen encapsulated end enumeration equation expandable extends external false final flow for
        function if import impure in initial inner input loop model not operator or outer output package parameter
        partial protected public pure record redeclare replaceable return stream then true type when while within
        abs acos actualStream asin atan atan2 ceil change cosh cos cross delay diagonal div edge exp fill floor
        getInstanceName homotopy identity inStream integer linspace log log10 matrix max min mod ndims noEvent ones
        outerProduct pre product reinit rem sample scalar semiLinear sign sin sinh size skew smooth
        spatialDistribution sqrt String sum symmetric tan tanh terminal terminate time transpose vector zeros
        Real Integer Boolean Modelica""",
    )
)
"""Keywords and what Modelica itself calls by a name."""

_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
_GREEK = re.compile(r"GREEK (?:SMALL|CAPITAL) LETTER (?:FINAL )?(\w+)")
_IDENT = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 200


def identifiers(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Return an identifier per name: itself where legal, else a similar one, with a number where that is taken."""
    used = set(taken)
    legal = {name for name in names if name not in used and _is_legal(name)}
    used |= legal
    result = []
    for name in names:
        if name in legal:
            result.append(name)
            continue
        base = identifier(name)
        candidate, number = base, 1
        while candidate in used:
            number += 1
            candidate = f"{base.rstrip('_')}_{number}"
        used.add(candidate)
        result.append(candidate)
    return result


def identifier(name: str) -> str:
    """Return the identifier that says ``name`` best."""
    if _is_legal(name):
        return name
    plain = "".join(_plain(c) for c in unicodedata.normalize("NFC", name).translate(_SPELLED))
    base = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_]+", "_", plain)).strip("_")
    if not base or base[0].isdigit():
        base = f"x_{base}".rstrip("_")
    if len(base) > _LONGEST:
        base = f"{base[: _LONGEST // 2]}_{base[-_LONGEST // 2 :]}"
    return f"{base}_" if base in RESERVED else base


def _is_legal(name: str) -> bool:
    return bool(_IDENT.fullmatch(name)) and name not in RESERVED and len(name) <= _LONGEST


def _plain(char: str) -> str:
    """Return a character in ASCII: without its accent, by the name of a Greek letter, or by its number."""
    if char.isascii():
        return char
    stripped = "".join(c for c in unicodedata.normalize("NFKD", char) if c.isascii() and c.isalnum())
    if stripped:
        return stripped
    if greek := _GREEK.match(unicodedata.name(unicodedata.normalize("NFD", char)[0], "")):
        word = greek.group(1).lower()
        return word.capitalize() if char.isupper() else word
    return f"u{ord(char):04X}" if char.isalnum() else "_"
