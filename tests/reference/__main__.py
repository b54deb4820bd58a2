"""Write the table anew: ``python -m tests.reference``. Only when a system itself was changed on purpose."""

from __future__ import annotations

import json
from pathlib import Path

from tests.reference.systems import CASES, linear_model


def main() -> None:
    table = {}
    for name in CASES:
        lin = linear_model(name)
        matrices = {letter: getattr(lin, letter).tolist() for letter in "ABCD"}
        table[name] = {"states": lin.states.names, "inputs": lin.inputs.names, "outputs": lin.outputs.names, **matrices}
        print(name, lin.A.shape)  # noqa: T201
    Path(__file__).with_name("numbers.json").write_text(json.dumps(table, indent=None).replace('}, "', '},\n"') + "\n")


if __name__ == "__main__":
    main()
