"""Fuzzing with coverage as the guide: ``python -m tests.fuzz TARGET [RUNS]``, with ``pip install atheris``.

TARGET is one of description, changed_description, constraint, constraints_file, archive, linear_model,
changed_linear_model, mechanism, changed_mechanism, system, changed_system, point. Every input must end in a
result or in an error of fmilin's own within twenty seconds and 2 GiB; anything else is printed with its input.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["fmilin"]):
    from tests.fuzz.seeds import SEEDS
    from tests.fuzz.targets import TARGETS

from fmilin.errors import FmilinError


def main(target: str, runs: int) -> None:
    def one(data: bytes) -> None:
        try:
            TARGETS[target](data)
        except FmilinError as error:
            if not str(error) or error.exit_status == 1:
                raise

    with tempfile.TemporaryDirectory(prefix="fmilin-fuzz-") as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for number, seed in enumerate(SEEDS[target]()):
            (corpus / str(number)).write_bytes(seed)
        options = [
            f"-runs={runs}",
            "-timeout=20",
            "-rss_limit_mb=2048",
            "-max_len=20000",
            "-len_control=0",
            f"-artifact_prefix={folder}/",
        ]
        atheris.Setup([sys.argv[0], *options, str(corpus)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
