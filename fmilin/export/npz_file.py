"""Records as archives of NumPy, without pickles.

Arrays stand under their names, those of a group under names like ``error_A`` for ``A`` in ``errors``. All facts are
JSON text in ``fmilin``; texts, numbers and lists of texts are arrays as well. The checksum is the text ``checksum``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from fmilin.export.archives import read_arrays, read_comment, write_archive
from fmilin.export.checksum import NAME, assess_checksum, compute_checksum
from fmilin.export.record import ByName, Record, Stored, facts_text

COMMENT = b"fmilin"  # of the archive: NumPy writes none


def encode(record: Record) -> bytes:
    """Return the content of a file."""
    arrays: dict[str, Any] = {name: array.values for name, array in record.arrays.items()}
    facts: dict[str, Any] = {}
    for name, value in record.facts.items():
        facts[name] = value
        if isinstance(value, dict) and not isinstance(value, ByName):
            group = {key: array for key, array in value.items() if isinstance(array, np.ndarray)}
            arrays |= {f"{name.removesuffix('s')}_{key}": array for key, array in group.items()}
            facts[name] = {key: inner for key, inner in value.items() if key not in group}
        elif name not in arrays and _is_array_of_texts(value):
            arrays[name] = np.array(value, dtype=np.str_)
        elif name not in arrays and isinstance(value, (int, float)) and not isinstance(value, bool):
            arrays[name] = np.array(value)
    arrays |= record.build_additions(".npz")
    arrays["fmilin"] = np.array(facts_text(facts))
    arrays[NAME] = np.array(compute_checksum(arrays))
    return write_archive(arrays, COMMENT)


def _is_array_of_texts(value: Any) -> bool:
    return isinstance(value, str) or (type(value) is list and all(isinstance(item, str) for item in value))


def decode(content: bytes) -> Stored:
    """Return what :func:`encode` wrote."""
    arrays = read_arrays(content)
    stated = str(arrays.pop(NAME)) if NAME in arrays else None
    integrity = assess_checksum(stated, compute_checksum(arrays), is_rewritten=not read_comment(content))
    facts: dict[str, Any] = json.loads(str(arrays["fmilin"])) if "fmilin" in arrays else {}
    for name, array in arrays.items():
        owner, key = _find_owner(name, facts)
        if owner is not None:
            owner[key] = array
        elif name not in facts and array.dtype.kind == "U":
            facts[name] = array.tolist()
    return Stored(arrays, facts, integrity)


def _find_owner(name: str, facts: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the group of which an array of this name is a member, and its name there, or None."""
    for group, _, key in (name.rpartition("_"), name.partition("_")):
        for each in (group, f"{group}s"):
            if key and isinstance(facts.get(each), dict):
                return facts[each], key
    return None, ""
