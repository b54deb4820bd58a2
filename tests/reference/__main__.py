"""Write the tables anew, ``python -m tests.reference [TABLE ...]``: only when a system was changed on purpose."""

from __future__ import annotations

import json
import sys
from typing import Any

import fmilin as fl
from tests.reference.cases import CASES, TABLES, linear_models
from tests.reference.families import SWEEPS
from tests.reference.record import record_of

OF_THE_WALK = {"branch", "coordinates-switched"}
"""Remarks that a point of a sweep has from the one before it."""


def main() -> None:
    for table in sys.argv[1:] or CASES:
        records = {
            name: {label: _recorded(name, linear) for label, linear in linear_models(table, name).items()}
            for name in CASES[table]
        }
        (TABLES / f"{table}.json").write_text(_laid_out(records, depth=3) + "\n")
        print(table, sum(map(len, records.values())))  # noqa: T201


def _recorded(name: str, linear: fl.LinearModel) -> dict[str, Any]:
    record = record_of(linear)
    sweep = SWEEPS.get(name.removeprefix("sweep of "))
    if sweep is not None:  # what is true of the point, not what was copied
        record["remarks"] = sorted([*sweep.alone(linear), *OF_THE_WALK.intersection(record["remarks"])])
    return record


def _laid_out(value: Any, depth: int) -> str:
    """Return JSON with a line for every matrix and list of names."""
    if not depth:
        return json.dumps(value, separators=(",", ":"))
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {_laid_out(v, depth - 1)}" for key, v in value.items()) + "\n}"


if __name__ == "__main__":
    main()
