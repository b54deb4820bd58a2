"""Sweeps by several processes and by a cluster: the same family, also when models crash and workers die."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import fmilin as fl
from fmilin import Limits
from fmilin.families import processes
from fmilin.families.cluster import PackedPlan
from fmilin.families.family_builder import FamilyBuilder
from fmilin.families.grid import build_grid
from fmilin.families.rows import OutcomeBlock, PointOutcome
from fmilin.families.sweep import choose_engine, run, split_into_runs
from fmilin.families.sweep_plan import SweepPlan
from fmilin.families.worker_process import MakersPipe, Pipe
from fmilin.fmi.client.restrictions import apply_limits
from fmilin.options import Loading
from fmilin.systems import four_bar
from tests.attacks import hostile_fmu, sandbox_holds
from tests.families.plants import oscillator
from tests.linearization.test_stack import in_stacks
from tests.shared import shared

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of fmilin need fork()"),
    pytest.mark.usefixtures("no_dump_of_the_stack"),
]


@pytest.fixture(scope="module")
def linkage() -> Path:
    from fmilin.fmi.write import build_fmu

    return shared("native-four_bar.fmu", lambda path: build_fmu(four_bar(), path))


def test_runs_cover_the_grid_and_each_starts_from_a_start() -> None:
    for shape in ((100,), (3, 40), (2, 2, 5), (1,)):
        grid = build_grid({f"x{i}": np.arange(float(n)) for i, n in enumerate(shape)})
        runs = split_into_runs(grid)
        covered = sorted(n for first, (_, others) in runs.items() for n in (first, *others))
        assert covered == list(range(grid.size))
        assert [first for first, (before, _) in runs.items() if before is None] == [0]
        assert all(before is None or before in runs for before, _ in runs.values())


def test_two_processes_say_what_one_says(linkage: Path) -> None:
    vary = {"phi": np.linspace(0.4, 2.6, 70)}
    trim = fl.TrimRequest(free=["torque"])
    one = fl.sweep(linkage, vary, trim=trim)
    two = fl.sweep(linkage, vary, trim=trim, jobs=2)
    assert one.ok.all()
    for name in ("A", "B", "T", "x0", "u0", "f0"):
        np.testing.assert_allclose(two.array(name), one.array(name), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        one.u0[:, 0],
        19.62 * np.cos(vary["phi"]) - 25 * (2 * np.cos(vary["phi"] / 2) - np.sqrt(2)) * np.sin(vary["phi"] / 2),
        rtol=1e-7,
        atol=1e-7,
    )


def test_points_of_batches_come_in_few_messages_and_runs_are_long(
    linkage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[str] = []
    take_messages, here = Pipe.messages, os.getpid()

    def messages(pipe: Pipe) -> Iterator[Any]:
        for message in take_messages(pipe):
            if os.getpid() == here:
                kinds.append(message[0])
            yield message

    monkeypatch.setattr(Pipe, "messages", messages)
    vary = {"torque": np.linspace(0.0, 1.0, 400)}
    two, one = fl.sweep(linkage, vary, jobs=2), fl.sweep(linkage, vary)
    assert in_stacks(two) >= 400 - 6  # the start of each of four runs, and what is left of them, stand alone
    assert kinds.count("begin") <= 8
    assert len(kinds) < 40
    for name in ("A", "B", "C", "T", "x0", "u0", "f0"):
        np.testing.assert_allclose(two.array(name), one.array(name), rtol=1e-12, atol=1e-12)
    assert [linear.warnings for linear in two] == [linear.warnings for linear in one]


def test_a_model_that_is_open_here_is_inherited() -> None:
    vary = {"k": np.linspace(1.0, 4.0, 40)}
    np.testing.assert_array_equal(fl.sweep(oscillator(), vary, jobs=2).A, fl.sweep(oscillator(), vary).A)


def test_an_fmu_that_is_open_here_is_inherited_and_each_process_has_a_host_of_its_own(linkage: Path) -> None:
    vary = {"phi": np.linspace(0.4, 2.6, 70)}
    trim = fl.TrimRequest(free=["torque"])
    with fl.load(linkage) as model:
        fl.linearize(model)
        start = fl.linearize(model).A  # as later calls compute it
        two = fl.sweep(model, vary, trim=trim, jobs=2)
        one = fl.sweep(model, vary, trim=trim)
        np.testing.assert_array_equal(fl.linearize(model).A, start)
    assert two.ok.all(), two.reasons
    np.testing.assert_allclose(two.A, one.A, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("fails", [False, True])
def test_no_process_outlives_the_work(fails: bool) -> None:
    before = set(psutil.Process().children())
    plan = SweepPlan(oscillator(), build_grid({"k": [1.0, 2.0]}))
    with contextlib.suppress(KeyError), choose_engine(plan, jobs=2) as engine:
        begun = set(psutil.Process().children()) - before
        assert len(begun) >= 2
        if fails:
            raise KeyError
    assert engine is not None  # kept, so that nothing ends because nobody needs it any more
    assert not [child for child in begun if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_crash_at_each_point_is_told_for_each(jobs: int, zoo: Callable[[str], Path]) -> None:
    family = fl.sweep(zoo("crashes"), {"x": [0.1, 0.2]}, jobs=jobs)
    assert not family.ok.any()
    assert all("crashed (SIGSEGV" in reason for reason in family.reasons)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_crash_is_one_failed_point(jobs: int, zoo: Callable[[str], Path]) -> None:
    family = fl.sweep(zoo("crashes_in_between"), {"x": [-9.0, -7.0, -5.0, -3.0, 0.55, 3.0, 5.0, 7.0, 9.0]}, jobs=jobs)
    assert np.flatnonzero(~family.ok).tolist() == [4], family.reasons
    assert "crashed (SIGSEGV" in family.reasons[4]
    np.testing.assert_allclose(family.A[family.ok], [[[0.0, 1.0], [-1.0, 0.0]]] * 8, atol=1e-9)


@pytest.mark.parametrize("name", ["doubles_always", "leaves_process"])
def test_points_come_whole_whatever_the_model_does_to_processes(name: str, zoo: Callable[[str], Path]) -> None:
    family = fl.sweep(zoo(name), {"x": [0.1, 0.2]}, jobs=2)
    assert family.ok.all(), family.reasons
    np.testing.assert_allclose(family.A, [[[0.0, 1.0], [-1.0, 0.0]]] * 2, atol=1e-9)


@pytest.mark.parametrize("name", ["writes_to_descriptors", "closes_descriptors"])
def test_a_model_that_destroys_the_connection_to_its_host_ends_itself_alone(
    name: str, zoo: Callable[[str], Path]
) -> None:
    family = fl.sweep(zoo(name), {"x": [0.1, 0.2]}, jobs=2)
    assert all(" in fmi2Get" in reason or "wrote into" in reason for reason in family.reasons)


def test_models_that_end_before_any_point_is_begun_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(pipe: MakersPipe) -> None:
        pipe.send(("ready", False))
        pipe.receive()
        os._exit(1)

    monkeypatch.setattr(processes, "make_server", lambda *_: serve)
    plan = SweepPlan(oscillator(), build_grid({"k": [1.0, 2.0]}))
    with choose_engine(plan, jobs=2) as engine:
        builder = FamilyBuilder(plan.grid)
        run(plan, engine, builder)
    assert not builder.family().ok.any()
    assert "can no longer be opened" in builder.family().reasons[0]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_model_that_hangs_is_stopped(jobs: int, zoo: Callable[[str], Path]) -> None:
    with (
        apply_limits(Limits(seconds=0.3)),
        pytest.raises(fl.ModelCrashError, match=r"did not return from .+ within 0\.3 s"),
    ):
        choose_engine(SweepPlan(str(zoo("hangs")), build_grid({"x": [0.1, 0.2]})), jobs=jobs)


def test_what_the_model_refuses_is_raised_here(linkage: Path) -> None:
    with pytest.raises(fl.UnknownNameError, match="'psi'"):
        fl.sweep(linkage, {"psi": [1.0, 2.0]}, jobs=2)
    with pytest.raises(fl.ModelError):
        fl.sweep(linkage.with_name("nothing.fmu"), {"phi": [1.0]}, jobs=2)


def test_parameters_of_an_fmu_open_it_anew(linkage: Path) -> None:
    family = fl.sweep(linkage, {"c": [0.0, 1.0], "phi": [1.0, 2.0]})
    assert family.ok.all(), family.reasons
    assert family[1, 0].point.parameters["c"] == 1.0
    known = fl.linearize(four_bar(damping=1.0), fl.operating_point(four_bar(), {"phi": 2.0}))
    np.testing.assert_allclose(family.A[1, 1], known.A, rtol=1e-7, atol=1e-7)


def test_a_cosimulation_fmu_over_a_parameter(linkage: Path) -> None:
    plan = SweepPlan(
        str(linkage),
        build_grid({"c": [0.5, 1.0]}),
        load=Loading(interface="cs"),
    )
    builder = FamilyBuilder(plan.grid)
    with choose_engine(plan) as engine:
        run(plan, engine, builder)
    family = builder.family()
    assert family.ok.all(), family.reasons
    for damping, A in zip((0.5, 1.0), family.A, strict=True):
        known = fl.linearize(four_bar(damping=damping)).eigenvalues()
        np.testing.assert_allclose(np.sort_complex(np.linalg.eigvals(A)), np.sort_complex(known), rtol=1e-4)


def local_cluster(**options: object) -> contextlib.AbstractContextManager[Any]:
    """Start a cluster whose scheduler takes any free port for its status, so that test runs do not meet at one."""
    distributed = pytest.importorskip("distributed")
    status = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    cluster: contextlib.AbstractContextManager[Any] = distributed.LocalCluster(
        silence_logs=50, scheduler_kwargs=status, **options
    )
    return cluster


def test_a_cluster_of_two_processes_of_which_one_is_killed(linkage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vary = {"phi": np.linspace(0.4, 2.6, 160)}
    killed: list[int] = []
    sizes: list[int] = []
    add_all = FamilyBuilder.add_all

    def record(builder: FamilyBuilder, outcomes: Sequence[PointOutcome]) -> None:
        sizes.append(len(outcomes) if isinstance(outcomes, OutcomeBlock) else 0)
        add_all(builder, outcomes)

    monkeypatch.setattr(FamilyBuilder, "add_all", record)
    with local_cluster(n_workers=2, threads_per_worker=1, processes=True) as cluster:
        victims = [worker.pid for worker in cluster.workers.values()]

        def progress(done: int, _: int) -> None:
            if done > 20 and not killed:
                killed.append(victims[0])
                os.kill(victims[0], signal.SIGKILL)

        family = fl.sweep(
            linkage,
            vary,
            trim=fl.TrimRequest(free=["torque"]),
            scheduler=cluster.scheduler_address,
            progress=progress,
        )
    assert killed
    assert family.ok.all(), family.reasons
    assert sum(sizes) > 100  # points of batches come whole
    here = fl.sweep(linkage, {"phi": vary["phi"][::40]}, trim=fl.TrimRequest(free=["torque"]))
    np.testing.assert_allclose(family.A[::40], here.A, rtol=1e-7, atol=1e-7)


def test_a_model_that_hangs_on_a_cluster_is_stopped(
    zoo: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmilin.families.cluster.RETRIES", 0)
    with local_cluster(n_workers=1, processes=False) as cluster:
        limits = Limits(seconds=1.0)
        family = fl.sweep(zoo("hangs"), {"x": [0.1]}, scheduler=cluster.scheduler_address, limits=limits)
    assert "did not return from fmi2ExitInitializationMode within 1 s" in family.reasons[0]


@pytest.mark.skipif(not sandbox_holds(), reason="this system does not offer all that the sandbox is made of")
def test_what_sweeps_and_clusters_start_cannot_write_into_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fmu = hostile_fmu("writes", tmp_path)
    assert fl.sweep(fmu, {"x": [0.0, 1.0]}).ok.all()
    with local_cluster(n_workers=1, processes=False) as cluster:
        assert fl.sweep(fmu, {"x": [0.0, 1.0]}, scheduler=cluster.scheduler_address).ok.all()
    assert not (tmp_path / "written-by-an-fmu").exists()
    with pytest.raises(fl.ModelError, match="could not be instantiated"):
        fl.sweep(fmu, {"x": [0.0, 1.0]}, limits=Limits(unrestricted=True))


def test_a_cluster_that_goes_away_is_one_sentence(linkage: Path) -> None:
    with (
        local_cluster(n_workers=1, processes=False) as cluster,
        pytest.raises(fl.ModelCrashError, match="The connection to the Dask scheduler"),
    ):
        fl.sweep(
            linkage,
            {"phi": np.linspace(0.4, 2.6, 160)},
            scheduler=cluster.scheduler_address,
            progress=lambda done, _: cluster.close(),
        )


def test_a_cluster_that_is_not_there_is_one_sentence(linkage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmilin.families.cluster.CONNECT", "300ms")
    with pytest.raises(fl.UsageError, match=r"No Dask scheduler answers at 'tcp://127\.0\.0\.1:1'"):
        fl.sweep(linkage, {"phi": [1.0]}, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(fl.UsageError, match="needs the model's file"):
        fl.sweep(oscillator(), {"k": [1.0]}, scheduler="tcp://127.0.0.1:1")


def test_the_file_travels_with_what_declares_its_constraints(linkage: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "plant.fmu").write_bytes(linkage.read_bytes())
    (tmp_path / "plant.fmilin.toml").write_text('[[constraint]]\nexpression = "x0"\n')
    plan = SweepPlan(str(tmp_path / "plant.fmu"), build_grid({"phi": [1.0]}))
    packed = PackedPlan.of(plan)
    there = packed.unpack(tmp_path / "there")
    assert there.source == str(tmp_path / "there" / "plant.fmu")
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == ["plant.fmilin.toml", "plant.fmu"]
    assert PackedPlan.of(plan).key == packed.key
    assert PackedPlan.of(SweepPlan("fmilin.systems:four_bar", build_grid({"phi": [1.0]}))).files == ()


def sweep_elsewhere(folder: Path, *arguments: str) -> str:
    """Run a script whose workers are programs, as on Windows and on a cluster; return what it prints."""
    (folder / "files").mkdir()
    for module in ("json", "pickle", "select", "struct", "numpy"):  # of Python and of a package
        (folder / "files" / f"{module}.py").write_text(f"open({str(folder / 'imported')!r}, 'a').write({module!r})")
    (folder / "script").mkdir()
    (folder / "script" / "plants.py").write_text("from fmilin.systems import four_bar\n")
    (folder / "script" / "study.py").write_text(
        "import os, sys\n"
        "del os.fork\n"
        "import fmilin as fl\n"
        "print(fl.sweep(sys.argv[1], {'k': [20.0, 25.0, 30.0]}, jobs=2).ok.all())\n"
    )
    done = subprocess.run(
        [sys.executable, folder / "script" / "study.py", *arguments],
        cwd=folder / "files",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_processes_import_nothing_from_the_current_folder(linkage: Path, tmp_path: Path) -> None:
    assert sweep_elsewhere(tmp_path, str(linkage)) == "True"
    assert not (tmp_path / "imported").exists()


def test_processes_import_what_the_program_can_import(tmp_path: Path) -> None:
    assert sweep_elsewhere(tmp_path, "plants:four_bar") == "True"
