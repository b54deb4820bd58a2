"""The front end in a process of its own: a script that reads a request as JSON and writes what was flattened.

It imports nothing of fmilin. The front end may crash, keeps hundreds of megabytes of parsed libraries, and finds its
cache by an environment variable: all of that ends with this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import signal
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1  # of prctl(2): which signal this process gets when its parent ends


def main() -> None:
    """Compile the model of the request in ``sys.argv[1]`` and write the answer to ``sys.argv[2]``."""
    with contextlib.suppress(Exception):  # Linux only; elsewhere the process ends when the model is compiled
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.modules["IPython"] = None  # type: ignore[assignment]  # the front end would import it for notebooks: half a second
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(compile_model(request), encoding="utf-8")


def compile_model(request: dict[str, Any]) -> str:
    """Return the flattened model and its equations as JSON, or the words of the error with its kind."""
    import rumoca

    try:
        session = rumoca.Session(roots=request["roots"])
        compiled = session.loads(request["text"], model=request["model"], filename=request["filename"])
        flat, dae = (compiled.to_json(stage, pretty=False) for stage in ("flat", "dae"))
        return f'{{"name": {json.dumps(compiled.name)}, "flat": {flat}, "dae": {dae}}}'
    except Exception as error:  # noqa: BLE001 - whatever the front end raises is explained by the parent
        return json.dumps({"error": str(error)})
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return json.dumps({"crash": str(error)})


if __name__ == "__main__":
    main()
