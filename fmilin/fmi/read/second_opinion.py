"""What FMPy says about a model description: the rules of the standard that it breaks, and what it reads otherwise.

FMPy is imported here alone, and when it is asked: that takes longer than reading most models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.description import Description
from fmilin.ground.files import temporary_folder

if TYPE_CHECKING:
    from pathlib import Path


READ_BY_FMPY = ("modelDescription.xml", "sources/buildDescription.xml")
MOST_NAMES = 3


def problems(fmu: FmuFile) -> list[str]:
    """Return a sentence per broken rule and difference; FMPy gets files that :class:`FmuFile` found harmless."""
    from fmpy.validation import validate_fmu

    ours = fmu.description
    with temporary_folder() as folder:
        _write(fmu, folder)
        broken = [" ".join(problem.split()) for problem in validate_fmu(str(folder))]
        return list(dict.fromkeys((*broken, *read_otherwise(ours, folder))))


def _write(fmu: FmuFile, folder: Path) -> None:
    for member in READ_BY_FMPY:
        content = fmu.read(member)
        if content is not None:
            (folder / member).parent.mkdir(exist_ok=True)
            (folder / member).write_bytes(content)


def read_otherwise(ours: Description, folder: Path) -> Iterator[str]:
    """Yield what FMPy reads otherwise from the model description in a folder."""
    from fmpy import read_model_description

    try:
        theirs = read_model_description(str(folder), validate=False)
    except Exception as error:  # noqa: BLE001 - of any kind: it does not expect files that break the rules
        yield " ".join(str(error).split()) or f"FMPy cannot read it: {type(error).__name__}."
        return
    if theirs.guid != ours.token:
        yield f"FMPy reads the identity {theirs.guid!r}, fmilin {ours.token!r}."
    if ours.fmi_version.startswith("1"):
        return  # whose states are in no description, and whose aliases are variables of their own
    for kind, mine, other in (
        ("states", ours.states, _states(theirs)),
        ("inputs", ours.variables.with_causality("input"), _of(theirs, "input")),
        ("outputs", ours.variables.with_causality("output"), _of(theirs, "output")),
    ):
        by_fmilin, by_fmpy = [(v.name, v.reference) for v in mine], [(v.name, int(v.valueReference)) for v in other]
        if by_fmilin != by_fmpy:
            yield f"FMPy reads {_listed(by_fmpy, kind)}, fmilin {_listed(by_fmilin, kind)}."


def _states(theirs: Any) -> list[Any]:
    return [unknown.variable.derivative for unknown in theirs.derivatives]


def _of(theirs: Any, causality: str) -> list[Any]:
    return [v for v in theirs.modelVariables if v.causality == causality and not v.alias]


def _listed(variables: Iterable[tuple[str, int]], kind: str) -> str:
    names = [f"{name} ({reference})" for name, reference in variables]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{len(names)} {kind}" + (f": {', '.join(names[:MOST_NAMES])}{more}" if names else "")
