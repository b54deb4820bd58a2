"""libcosim, a master for co-simulation, steps our FMUs: in a process of its own, since it writes its own log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar

SCRIPT = """
import json, sys
from libcosimpy.CosimExecution import CosimExecution
from libcosimpy.CosimObserver import CosimObserver
from libcosimpy.CosimSlave import CosimLocalSlave

execution = CosimExecution.from_step_size(step_size=10_000_000)
number = execution.add_local_slave(local_slave=CosimLocalSlave(fmu_path=sys.argv[1], instance_name="plant"))
observer = CosimObserver.create_last_value()
execution.add_observer(observer=observer)
assert execution.simulate_until(target_time=500_000_000)
values = observer.last_real_values(slave_index=number, variable_references=json.loads(sys.argv[2]))
print("FOUND", json.dumps(list(values)))
"""


def test_a_master_steps_it_as_we_do(tmp_path: Path) -> None:
    pytest.importorskip("libcosimpy", reason="libcosimpy has no wheel for this platform")
    path = build_fmu(four_bar(), tmp_path / "four_bar.fmu")
    with fl.load(path) as model:
        assert isinstance(model, fl.Model)
        references = [model.description.by_name[name].reference for name in model.states.names]  # type: ignore[attr-defined]
        end = fl.simulate(model, stop_time=0.5, step=0.01)
        names = model.states.names
    command = [sys.executable, "-c", SCRIPT, str(path), json.dumps(references)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    [printed] = [line.removeprefix("FOUND") for line in done.stdout.splitlines() if line.startswith("FOUND")]
    actual = dict(zip(names, json.loads(printed), strict=True))
    for name in names:
        assert actual[name] == pytest.approx(float(end[name][-1]), abs=1e-6)
