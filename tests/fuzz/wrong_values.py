"""Wrong values at every argument of the public functions: ``python -m tests.fuzz.wrong_values [NAME ...]``.

Every call ends with a result or with an error of fmilin's own, in words. Calls whose answer is anything else are
printed, with the numbers of calls and of errors.
"""

from __future__ import annotations

import contextlib
import io
import math
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import fmilin as fl
from fmilin.models import OdeModel
from tests.fuzz.public_calls import CALLS

__all__ = ["VALUES", "Outcome", "attempt", "is_wrong"]

VALUES: Mapping[str, Any] = {
    "None": None,
    "a text": "text",
    "an empty text": "",
    "NaN": math.nan,
    "infinity": math.inf,
    "a huge integer": 10**400,
    "an empty list": [],
    "-1": -1,
    "0": 0,
    "a complex number": 1j,
    "a list of None": [None],
    "a matrix of NaN": [[math.nan]],
    "an infinite matrix": [[math.inf, 0.0], [0.0, math.inf]],
    "a negative matrix": [[-1.0, 0.0], [0.0, -1.0]],
    "an asymmetric matrix": [[1.0, 2.0], [0.0, 1.0]],
    "a ragged list": [[1.0], [1.0, 2.0]],
    "a list of texts": ["x", "x"],
    "a mapping to NaN": {"x": math.nan},
    "a mapping to a text": {"x": "one"},
    "a mapping to None": {"u": None},
    "a mapping of numbers": {1: 1.0},
    "an empty mapping": {},
    "an object": object(),
    "a type": int,
    "a function": len,
    "bytes": b"x",
    "a model": OdeModel("wrong", {"z": "-z"}),
}

PASSED_ON = ("function", "inputs", "make", "run", "structure", "opener", "use")  # arguments that are called
CALLABLES = ("a function", "a type")
LIMIT = 20  # seconds that a call may take


class Outcome(NamedTuple):
    """What a call with one wrong value ended with."""

    call: str
    argument: str
    value: str
    error: BaseException | None


def attempt(name: str, argument: str, value_name: str) -> Outcome:
    """Call a function with one wrong argument, quietly, within the limit of time."""
    call = CALLS()[name]
    arguments = {**call.arguments, argument: VALUES[value_name]}

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {LIMIT} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    error: BaseException | None = None
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("error", RuntimeWarning)
            call.function(**arguments)
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - which kind it is, is the question
        error = raised
    finally:
        signal.alarm(0)
    return Outcome(name, argument, value_name, error)


def is_wrong(outcome: Outcome) -> bool:
    """Whether a call ended with anything but a result or an error of fmilin's own in words.

    An exception that a function of the user's raises when it is called is passed on as it is.
    """
    error = outcome.error
    if outcome.argument in PASSED_ON and outcome.value in CALLABLES:
        return False
    return error is not None and not (isinstance(error, fl.FmilinError) and len(str(error).split()) > 3)


def list_outcomes(names: list[str]) -> Iterator[Outcome]:
    for name in names:
        for argument in CALLS()[name].arguments:
            for value_name in VALUES:
                yield attempt(name, argument, value_name)


def describe(outcome: Outcome) -> str:
    """Return the call, the error and the line of fmilin that it came from."""
    error = outcome.error
    if error is None:
        return f"{outcome.call}({outcome.argument}={outcome.value}): a result"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/fmilin/" in frame.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "no line of fmilin"
    said = f"{type(error).__name__}: {str(error)[:90]}"
    return f"{outcome.call}({outcome.argument}={outcome.value}): {said} [{place}]"


def main(names: list[str]) -> None:
    calls = errors = wrong = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(Path(folder)):
        for outcome in list_outcomes(names or list(CALLS())):
            calls += 1
            errors += outcome.error is not None
            if is_wrong(outcome):
                wrong += 1
                sys.stdout.write(f"{describe(outcome)}\n")
    sys.stdout.write(f"{calls} calls, {errors} errors, {wrong} without fmilin's own words\n")


if __name__ == "__main__":
    main(sys.argv[1:])
