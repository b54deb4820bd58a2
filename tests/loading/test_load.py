from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin
from fmilin import Constraint, load
from fmilin.errors import ConstraintError, ModelError, UnknownNameError, UsageError
from fmilin.fmi.read.archive import FmuFile
from fmilin.loading.load import find_constraints, load_request
from fmilin.options import Loading
from fmilin.trimming.trim_request import PointRequest
from tests.fmus.make import build

INSIDE = "extra/org.fmilin/constraints.toml"
ROD = "pin.x^2 + pin.y^2 - L^2"

MODELS = """
from dataclasses import dataclass
import numpy as np
from fmilin.constraints.declared import Constraints
from fmilin.model.interface import Evaluation, Model, ModelInfo, OperatingPoint
from fmilin.signals import Signals
from helper_of_models import GAIN

@dataclass
class Settings:
    loops: int = 1

class Decay(Model):
    def __init__(self, rates=(1.0,)):
        self.info, self.rates, self.copies = ModelInfo("decay"), np.array(rates), {}
        self.states, self.inputs, self.outputs = Signals(f"x{i}" for i in range(len(rates))), Signals(), Signals()
        self.constraints = Constraints([], self.states, self.inputs)
        self.start = OperatingPoint(0.0, np.ones(len(rates)), np.empty(0))
    def evaluate(self, t, x, u):
        return Evaluation(-GAIN * self.rates * x, np.empty(0), self.constraints.residuals(t, x, u, np.empty(0)))
    def with_interface(self, inputs=None, outputs=None):
        return self
    def with_constraints(self, constraints):
        other = Decay(self.rates)
        other.constraints = Constraints(constraints, self.states, self.inputs)
        return other

ready = Decay()
number = 3

def decay(*, rates=(1.0,), options=None):
    return Decay(rates)

def broken():
    return {}["missing key"]

def leaves():
    raise SystemExit("no more")

def complains():
    from fmilin.errors import NumericalError
    raise NumericalError("singular on purpose")
"""


@pytest.fixture(scope="module")
def pendulum(zoo: Callable[[str], Path]) -> Path:
    return zoo("pendulum")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    (tmp_path / "helper_of_models.py").write_text("GAIN = 2.0\n")
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


def test_an_fmu_by_path_and_by_text(pendulum: Path) -> None:
    for source in (pendulum, str(pendulum)):
        with load(source) as model:
            assert model.states.names == ("pin.x", "pin.y", "pin.vx", "pin.vy")
            assert len(model.constraints) == 0


def test_the_public_name_stays_a_function(pendulum: Path) -> None:
    for _ in range(2):
        with fmilin.load(pendulum, parameters={"L": 2.0}, time=1.5) as model:
            assert model.start.parameters == {"L": 2.0}
            assert model.start.time == 1.5


def test_constraints_as_texts_names_and_objects(pendulum: Path) -> None:
    given: list[str | Constraint] = [ROD, "rod.gap", Constraint.from_text("lambda", name="slack", level="velocity")]
    with load(pendulum, constraints=given) as model:
        assert model.constraints.names == (ROD, "rod.gap", "slack")
        assert [c.level for c in model.constraints.declared] == ["position", "position", "velocity"]


def test_constraints_beside_the_fmu_come_before_those_inside_and_none_switches_both_off(tmp_path: Path) -> None:
    inside = '[[constraint]]\nvariable = "rod.gap"\n[coordinates]\nindependent = ["pin.x", "pin.vx"]\n'
    path = build("pendulum", tmp_path, extra={INSIDE: inside})
    with load(path) as model:
        assert model.constraints.names == ("rod.gap",)
        assert model.independent == ("pin.x", "pin.vx")
    assert find_constraints(FmuFile(path))[1] == f"{INSIDE} inside pendulum.fmu"
    beside = tmp_path / "pendulum.fmilin.toml"
    beside.write_text(f'[[constraint]]\nexpression = "{ROD}"\n')
    with load(path) as model:
        assert model.constraints.names == (ROD,)
        assert model.independent == ()
    assert find_constraints(FmuFile(path))[1] == str(beside)
    with load(path, constraints=[]) as model:
        assert len(model.constraints) == 0
        assert model.independent == ()


def test_no_constraints_anywhere(pendulum: Path) -> None:
    assert find_constraints(FmuFile(pendulum)) == (None, "")


def test_a_constraints_file_and_constraints_both_hold(pendulum: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[constraint]]\nvariable = "rod.gap"\n[coordinates]\nindependent = ["pin.y"]\n')
    with load(pendulum, constraints=[ROD], constraints_file=file) as model:
        assert model.constraints.names == ("rod.gap", ROD)
        assert model.independent == ("pin.y",)


def test_wrong_constraints_inside_are_named(tmp_path: Path) -> None:
    path = build("pendulum", tmp_path, extra={INSIDE: "[[constraint]]\nexpression = 'x +'"})
    with pytest.raises(ConstraintError, match=r"In extra/org.fmilin/constraints.toml inside pendulum.fmu, entry 1"):
        load(path)


def test_a_constraint_that_is_neither_text_nor_constraint(pendulum: Path) -> None:
    with pytest.raises(UsageError, match="An entry of 'constraints' is of the type 'int', and should be"):
        load(pendulum, constraints=[3])  # type: ignore[list-item]


def test_a_single_text_is_no_sequence_of_constraints(pendulum: Path) -> None:
    with pytest.raises(UsageError, match=r"'constraints' is the text .* and should be a list: write"):
        load(pendulum, constraints=ROD)


@pytest.mark.parametrize(
    ("name", "states"),
    [("ready", 1), ("Decay", 1), ("decay", 1), ("decay(rates=[1.0, 2.0])", 2),
     ("decay(rates=(1, 2, 3), options={'a:b': (1, 2)})", 3), ("decay( )", 1)],
)  # fmt: skip
def test_a_model_in_a_python_file(models: Path, name: str, states: int) -> None:
    path_before = list(sys.path)
    with load(f"{models}:{name}") as model:
        assert len(model.states) == states
        assert model.evaluate(0.0, model.start.states, model.start.inputs).derivatives[0] == -2.0
    assert sys.path == path_before


def test_a_model_in_a_package(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(models.parent))
    assert len(load("models:decay(rates=[1, 2])").states) == 2


def test_constraints_replace_those_of_a_native_model(models: Path) -> None:
    model = load(f"{models}:decay(rates=[1, 1])", constraints=["x0 - x1"])
    assert model.constraints.names == ("x0 - x1",)


def test_parameters_of_a_native_model() -> None:
    with load("fmilin.systems:cartesian_pendulum") as model:
        name = next(iter(model.parameters))
    changed = load("fmilin.systems:cartesian_pendulum", parameters={name: "1.25"})
    assert changed.parameters[name] == 1.25
    with pytest.raises(UsageError, match=f"parameters of a native model must be numbers, not {name}='long'"):
        load("fmilin.systems:cartesian_pendulum", parameters={name: "long"})


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("decy", UnknownNameError, r"'decy' is not defined in '.*models.py'. Did you mean '[dD]ecay'"),
        ("number", ModelError, r"is a int, not a fmilin Model or a function that returns one"),
        ("ready(a=1)", UsageError, r"takes no arguments: it is not a function but a Decay"),
        ("decay(1)", UsageError, r"arguments of 'decay\(1\)' cannot be read: only keywords with literal values"),
        ("decay(rates=open('/etc/passwd'))", UsageError, r"only keywords with literal values"),
        ("decay(**{'rates': [1]})", UsageError, r"only keywords with literal values"),
        ("decay(rates=)", UsageError, r"only keywords with literal values"),
        ("decay(speed=1)", UnknownNameError, r"'speed' is not a keyword of '.*models.py:decay'. Known: rates"),
        ("broken", ModelError, r"KeyError: 'missing key' \(.*models.py, line 35\). Correct that file"),
        ("leaves", ModelError, r"SystemExit: no more"),
    ],
)
def test_what_can_go_wrong_with_a_python_file(models: Path, name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load(f"{models}:{name}")


def test_values_that_a_system_of_ours_cannot_take_are_arguments_and_no_file() -> None:
    with pytest.raises(ModelError, match=r"OverflowError: [^()]*\. Correct its arguments"):
        load("fmilin.systems:four_bar(loops=1e999)")


def test_our_own_errors_pass_through(models: Path) -> None:
    with pytest.raises(fmilin.NumericalError, match="singular on purpose"):
        load(f"{models}:complains")


def test_a_file_that_does_not_compile(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("def f(:\n")
    with pytest.raises(
        ModelError, match=r"bad.py:f' cannot be loaded: SyntaxError.*bad.py, line 1\). Correct that file"
    ):
        load(f"{path}:f")
    assert "fmilin_user_bad" not in sys.modules


def test_missing_sources(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"There is no file '.*absent.fmu'"):
        load(tmp_path / "absent.fmu")
    with pytest.raises(ModelError, match=r"There is no file '.*absent.py'"):
        load(f"{tmp_path}/absent.py:model")
    with pytest.raises(ModelError, match=r"ModuleNotFoundError: No module named 'absent_package'"):
        load("absent_package:model")


def test_parameters_and_time_that_a_model_does_not_take(models: Path) -> None:
    with pytest.raises(UsageError, match=r"parameters of 'decay' \(a\) cannot be changed"):
        load(f"{models}:ready", parameters={"a": 1.0})
    with pytest.raises(UsageError, match="its start time is not set when it is loaded"):
        load(f"{models}:ready", time=1.0)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("robot.usd", r"No reader is installed for models with the suffix '.usd' .*Supported are 'model.fmu'"),
        ("nonsense", r"is not a model that fmilin can read, without a suffix"),
        ("models.py", r"'models.py' may contain several models: name one of them, as in 'models.py:name'"),
    ],
)
def test_sources_of_an_unknown_kind(source: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        load(source)
    assert caught.value.exit_status == 2


def test_an_existing_file_of_an_unknown_kind(tmp_path: Path) -> None:
    path = tmp_path / "model.slx"
    path.touch()
    with pytest.raises(UsageError, match=r"of the suffix '.slx'. Supported are"):
        load(path)


def test_a_model_that_brings_constraints_says_so_when_they_are_left_out(tmp_path: Path) -> None:
    from fmilin.fmi.write import build_fmu
    from fmilin.systems import cartesian_pendulum

    path = build_fmu(cartesian_pendulum(), tmp_path / "own.fmu")
    with load(path) as model:
        assert not any("residual" in name for name in model.outputs.names)  # they are zero: outputs of no use
        assert not model.notes
        asked = model.with_interface(outputs=["residual[1]"])
        assert asked.outputs.names == ("residual[1]",)
    with load(path, constraints=[]) as model:
        naive = fmilin.linearize(model)
        assert len(naive.states) == 4
        assert "constraints in its file" in " ".join(map(str, naive.warnings))


# ---------------------------------------------------------------------- once


def once(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[object]:
    """Return a list that grows with every call of a function."""
    calls: list[object] = []
    function = getattr(owner, name)

    def counted(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, counted)
    return calls


def test_a_python_model_is_loaded_once_whatever_is_set(models: Path) -> None:
    models.write_text(MODELS + "with open(__file__ + '.log', 'a') as log:\n    log.write('read ')\n")
    model = load_request(f"{models}:decay(rates=(1.0, 2.0))", Loading(), PointRequest(settings={"x1": 3.0}))
    assert model.states.has("x1")
    assert Path(f"{models}.log").read_text() == "read "


def test_a_setting_that_nothing_is_called_is_compared_with_states_inputs_and_parameters() -> None:
    with pytest.raises(UnknownNameError, match=r"'phy'.*phi"):
        load_request("fmilin.systems:four_bar", Loading(), PointRequest(settings={"phy": 1.0}))


def test_the_description_of_an_fmu_is_read_once_and_its_states_are_left_to_the_point(
    pendulum: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fmilin.fmi.read import archive

    read = once(monkeypatch, archive, "parse_description")
    at = PointRequest(settings={"pin.x": 0.5, "F": 1.0, "mass": 3.0})
    with load_request(pendulum, Loading(constraints=[]), at) as model:
        assert len(read) == 1
        assert model.start.parameters == {"mass": 3.0}
        assert model.start.states[model.states.positions["pin.x"]] == 0.0
        np.testing.assert_array_equal(model.start.inputs, [0.0])


def test_an_fmu_of_fmi_1_is_loaded_once_although_its_code_alone_knows_the_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fmilin.fmi.read.component import LoadedCode

    loaded = once(monkeypatch, LoadedCode, "__init__")
    path = build("spring1", tmp_path)
    with load_request(path, Loading(), PointRequest(settings={"x": 2.0, "stiffness": 5.0})) as model:
        assert len(loaded) == 1
        assert model.start.states[model.states.positions["x"]] != 2.0
        assert model.start.parameters == {"stiffness": 5.0}
