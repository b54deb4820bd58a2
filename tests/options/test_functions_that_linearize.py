"""Every function that linearizes takes the options of a linearization, with the results of single points.

The file is longer than others because it is one table of functions by options, with cases that share their models.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.discovery.tangent import linearize_on_tangent
from fmilin.models import FunctionModel, OdeModel
from fmilin.options import WITHOUT_MEANING, describe
from fmilin.options import function_options as option_classes
from fmilin.options.function_options import KEYWORDS
from fmilin.systems import cartesian_pendulum, four_bar
from tests.by_hand import FunctionModel as HandModel
from tests.by_hand import Parts
from tests.identification.toys import Toy, oscillators
from tests.systems.skate_model import skate

IN_MODULES: Mapping[str, Callable[..., Any]] = {"linearize_on_tangent": linearize_on_tangent}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    name: IN_MODULES.get(name) or getattr(fl, name, None) or getattr(fl.design, name) for name in WITHOUT_MEANING
}
KEYWORD_CLASSES = {
    "linearize": "LinearizationOptions",
    "sweep": "FamilyOptions",
    "linearize_along": "FamilyOptions",
    "batch": "BoxOptions",
    "linearize_periodic": "PeriodicOptions",
    "floquet_chart": "CoordinateOptions",
    "linearize_on_tangent": "TangentOptions",
    "loop_transfer": "LoopOptions",
    "sensitivity": "ClosedLoopOptions",
    "complementary_sensitivity": "ClosedLoopOptions",
    "opened": "OpenedOptions",
    "sampled_loop": "CoordinateOptions",
    "cosimulated": "AccuracyOptions",
    "reduce_members": "AccuracyOptions",
    "uncertain": "BoxOptions",
    "place_modes": "BoxOptions",
    "identified_parameters": "BoxOptions",
    "explain": "DerivativeOptions",
    "explain_zeros": "DerivativeOptions",
}

KINK = OdeModel("kink", {"x": "v", "v": "-k*abs(x) - v + F"}, inputs=["F"], parameters={"k": 4.0})
SWING = OdeModel("swing", {"x": "v", "v": "-k*sin(x) - v + F"}, inputs=["F"], parameters={"k": 4.0})


# -- the table ---------------------------------------------------------------------------------------------


def test_public_functions_with_a_linearization_are_those_of_the_table() -> None:
    public = {name: getattr(fl, name) for name in dir(fl) if not name.startswith("_")}
    public |= {name: getattr(fl.design, name) for name in fl.design.__all__}
    functions = {name: thing for name, thing in public.items() if inspect.isfunction(thing)}
    taking = {name for name, thing in functions.items() if "linearization" in inspect.signature(thing).parameters}
    assert taking | IN_MODULES.keys() == set(WITHOUT_MEANING)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_signature_has_the_options_with_a_meaning(name: str) -> None:
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    defaults = {d.keyword: d.default for d in describe(fl.Linearization)}
    for keyword in KEYWORDS:
        if keyword not in WITHOUT_MEANING[name]:
            assert parameters[keyword].default == defaults[keyword]
            assert parameters[keyword].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", FUNCTIONS)
def test_type_checkers_read_the_options_with_a_meaning(name: str) -> None:
    keywords = getattr(option_classes, KEYWORD_CLASSES[name])
    assert keywords.__total__ is False
    assert set(keywords.__annotations__) == set(KEYWORDS) - set(WITHOUT_MEANING[name])
    source = inspect.getsource(inspect.unwrap(FUNCTIONS[name]))
    assert f"**options: Unpack[{KEYWORD_CLASSES[name]}]" in source


def test_keywords_have_the_types_of_the_dataclass() -> None:
    types = {d.keyword: d.type for d in describe(fl.Linearization)}
    for name in set(KEYWORD_CLASSES.values()):
        annotations = getattr(option_classes, name).__annotations__
        assert {key: entry.__forward_arg__ for key, entry in annotations.items()} == {
            key: types[key] for key in annotations
        }


EXAMPLES: Mapping[str, Any] = {
    "independent": ["x"],
    "inputs": ["F"],
    "outputs": ["x"],
    "coordinates": "tangent",
    "derivatives": "differences",
    "one_sided": "left",
    "at_singularity": True,
    "stepping": fl.Stepping(lifted=True, step=0.1),
    "formulation": "mcs",
    "descriptor": True,
    "keep_inaccurate": True,
    "hold_modes": True,
    "keep_totals": True,
    "parameters": ["k"],
    "delays": {"F": 0.1},
}


@pytest.mark.parametrize(("name", "keyword"), [(n, k) for n, table in WITHOUT_MEANING.items() for k in table])
def test_an_option_without_meaning_is_rejected_with_the_reason(name: str, keyword: str) -> None:
    because = WITHOUT_MEANING[name][keyword]
    options = fl.Linearization(**{keyword: EXAMPLES[keyword]})
    with pytest.raises(fl.UsageError) as caught:
        option_classes.merge_options(name, options, {})
    assert str(caught.value) == f"{keyword}= has no meaning in {name}(). {because} Leave it out of the call."


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_option_that_is_given_twice_is_an_error(name: str) -> None:
    keyword = next(k for k in KEYWORDS if k not in WITHOUT_MEANING[name])
    options = fl.Linearization(**{keyword: EXAMPLES[keyword]})
    with pytest.raises(fl.UsageError, match=rf"{name}\(\) is given {keyword}= twice, as a keyword and in"):
        option_classes.merge_options(name, options, {keyword: EXAMPLES[keyword]})


def test_errors_reach_the_caller_of_a_function() -> None:
    with pytest.raises(fl.UsageError, match=r"linearize\(\) is given outputs= twice"):
        fl.linearize(KINK, linearization=fl.Linearization(outputs=["x"]), outputs=["v"])
    with pytest.raises(fl.UsageError, match=r"formulation= has no meaning in loop_transfer\(\)"):
        fl.loop_transfer(loop(SWING), "plant.F", linearization=fl.Linearization(formulation="mcs"))
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'indepndent'.*'independent'"):
        fl.linearize(KINK, indepndent=["x"])  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coordinates": "polar"}, "coordinates= must be 'partition' or 'tangent', and is 'polar'"),
        ({"derivatives": "guess"}, "derivatives= must be 'auto', 'exact' or 'differences', and is 'guess'"),
        ({"one_sided": "up"}, "one_sided= must be 'left' or 'right', and is 'up'"),
        ({"formulation": "mcs", "coordinates": "tangent"}, "formulation= and coordinates= exclude each other"),
        (
            {"coordinates": "tangent", "parameters": ["k"]},
            "parameters= and coordinates= exclude each other.*independent=",
        ),
        ({"descriptor": True, "one_sided": "left"}, "descriptor= and one_sided= exclude each other"),
        ({"outputs": "x"}, r"'outputs' is the text 'x', and should be a list: write \['x'\]"),
        ({"keep_inaccurate": 3}, "'keep_inaccurate' is of the type 'int'"),
    ],
)
def test_values_that_are_not_possible(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fl.UsageError, match=message):
        fl.Linearization(**options)
    with pytest.raises(fl.UsageError, match=message):
        fl.linearize(SWING, **options)


# -- sweeps and paths ----------------------------------------------------------------------------------------


def test_a_sweep_over_a_kink_has_the_derivatives_of_one_side() -> None:
    """d|x|/dx at 0 is -1 on the left and +1 on the right."""
    for side, sign in (("left", -1.0), ("right", 1.0)):
        family = fl.sweep(KINK, {"k": [1.0, 2.0, 4.0]}, one_sided=side)  # type: ignore[call-overload]
        np.testing.assert_allclose(family.A[:, 1, 0], -sign * np.array([1.0, 2.0, 4.0]), rtol=1e-7)
    assert not fl.sweep(KINK, {"k": [1.0, 2.0]}).ok.any()


@pytest.mark.parametrize("trim", [False, True])
def test_derivatives_by_parameters_along_a_sweep_are_those_of_single_points(trim: bool) -> None:
    """A trimmed point moves with k: sin(x) = F/k, and dA/dk = -cos(x) + k sin(x) dx/dk with dx/dk = -tan(x)/k."""
    angles = np.array([0.2, 0.5, 0.9])
    axes, request = {"x": angles}, fl.TrimRequest(free=["F"])
    family = fl.sweep(SWING, axes, trim=request if trim else None, parameters=["k"])
    assert family.derivatives["k"].A.shape == (3, 2, 2)
    np.testing.assert_allclose(family.derivatives["k"].A[:, 1, 0], -np.cos(angles), rtol=1e-8)
    for number, angle in enumerate(angles):
        single_point = (
            fl.trim(SWING, fixed={"x": angle}, free=["F"]) if trim else fl.operating_point(SWING, {"x": angle})
        )
        single = fl.linearize(SWING, single_point, parameters=["k"])
        np.testing.assert_allclose(family.derivatives["k"].A[number], single.derivatives["k"].A, atol=1e-9)
        np.testing.assert_allclose(family[number].derivatives["k"].inputs, single.derivatives["k"].inputs, atol=1e-9)


@pytest.mark.parametrize("suffix", [".json", ".npz", ".nc", ".mat"])
def test_files_of_a_family_have_its_derivatives(suffix: str, tmp_path: Path) -> None:
    family = fl.sweep(SWING, {"x": [0.2, 0.5]}, parameters=["k"])
    family.save(tmp_path / f"family{suffix}")
    loaded = fl.LinearFamily.load(tmp_path / f"family{suffix}")
    np.testing.assert_allclose(loaded.derivatives["k"].A, family.derivatives["k"].A, rtol=1e-15)
    np.testing.assert_allclose(loaded[1].eigenvalue_derivatives(), family[1].eigenvalue_derivatives())


def test_a_trimmed_point_of_a_sweep_follows_its_parameter() -> None:
    forces = np.linspace(0.5, 3.0, 6)
    family = fl.sweep(SWING, {"F": forces}, trim=True, parameters=["k"])
    x = np.arcsin(forces / 4.0)
    np.testing.assert_allclose(family.derivatives["k"].A[:, 1, 0], -np.cos(x) - np.sin(x) * np.tan(x), rtol=1e-7)
    np.testing.assert_allclose(family[1:3].derivatives["k"].A, family.derivatives["k"].A[1:3])


def test_derivatives_of_a_constrained_model_along_a_path_are_those_of_single_points() -> None:
    model = cartesian_pendulum()
    name = next(iter(model.parameters))
    points = [fl.operating_point(model, {"x": x}) for x in (0.1, 0.3, 0.5, 0.6, 0.7)]
    family = fl.linearize_along(model, points, parameters=[name], independent=["x", "vx"])
    for number, point in enumerate(points):
        single = fl.linearize(model, point, parameters=[name], independent=["x", "vx"])
        np.testing.assert_allclose(family.derivatives[name].A[number], single.derivatives[name].A, rtol=1e-9, atol=1e-9)


def test_derivatives_by_parameters_on_one_side_of_a_kink() -> None:
    for side, sign in (("left", -1.0), ("right", 1.0)):
        linear = fl.linearize(KINK, one_sided=side, parameters=["k"])  # type: ignore[arg-type]
        np.testing.assert_allclose(linear.derivatives["k"].A, [[0.0, 0.0], [-sign, 0.0]], atol=1e-6)


def test_inputs_are_chosen_along_a_path_wherever_the_others_are() -> None:
    """B by the second input is the value of the first, which is not at its start."""
    model = OdeModel("product", {"x": "-x + a*b"}, inputs=["a", "b"])
    points = [fl.operating_point(model, {"a": a, "b": 1.0}) for a in (2.0, 3.0, 5.0)]
    family = fl.linearize_along(model, points, inputs=["b"])
    assert family.inputs.names == ("b",)
    np.testing.assert_allclose(family.B[:, 0, 0], [2.0, 3.0, 5.0])
    singles = [fl.linearize(model, point, inputs=["b"]).B for point in points]
    np.testing.assert_allclose(family.B, singles)


def coarse() -> HandModel:
    """x' = -x, y is x in stairs of an eighth: its derivative cannot be told."""
    parts = Parts(["x"], [0.41], lambda t, x, u: -x, [], ["y"], lambda t, x, u: np.floor(x * 8) / 8)
    return HandModel(parts)


def test_a_sweep_keeps_inaccurate_entries() -> None:
    assert not fl.sweep(coarse(), {"x": [0.41, 0.42]}).ok.any()
    family = fl.sweep(coarse(), {"x": [0.41, 0.42]}, keep_inaccurate=True)
    assert family.ok.all()
    single = fl.linearize(coarse(), keep_inaccurate=True)
    np.testing.assert_array_equal(family[0].C, single.C)


class Stuck(HandModel):
    """x' = -2 x between two events that lie at the point."""

    def event_indicators(self, t: float, x: Any, u: Any) -> Any:
        return np.array([x[0], -x[0]])

    def with_constraints(self, constraints: Any) -> Stuck:
        return self


def stuck() -> Stuck:
    return Stuck(Parts(["x"], [0.0], lambda t, x, u: -2 * x))


def test_a_sweep_holds_the_modes_at_an_event() -> None:
    assert not fl.sweep(stuck(), {"x": [0.0]}).ok.any()
    family = fl.sweep(stuck(), {"x": [0.0]}, hold_modes=True)
    np.testing.assert_allclose(family.A.ravel(), [-2.0], rtol=1e-8)
    point = fl.operating_point(stuck())
    np.testing.assert_allclose(fl.linearize_along(stuck(), [point], hold_modes=True).A.ravel(), [-2.0], rtol=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {"descriptor": True},
        {"formulation": "mcs"},
        {"formulation": "rcs", "descriptor": True},
        {"coordinates": "tangent"},
        {"derivatives": "differences"},
    ],
    ids=str,
)
def test_a_sweep_and_a_path_have_the_linear_models_of_single_points(options: dict[str, Any]) -> None:
    model, angles = four_bar(), [0.9, 1.1]
    points = [fl.operating_point(model, {"phi": phi}) for phi in angles]
    singles = [fl.linearize(model, point, **options) for point in points]
    for family in (fl.sweep(model, {"phi": angles}, **options), fl.linearize_along(model, points, **options)):
        for single, linear in zip(singles, family, strict=True):
            np.testing.assert_allclose(
                np.sort_complex(linear.eigenvalues()), np.sort_complex(single.eigenvalues()), rtol=1e-6, atol=1e-7
            )
            assert linear.sample_time == single.sample_time
            assert (linear.descriptor is None) == (single.descriptor is None)
            if linear.descriptor is not None and single.descriptor is not None:
                np.testing.assert_allclose(linear.descriptor.E, single.descriptor.E, atol=1e-9)


def test_a_path_of_a_stepped_model_has_its_discrete_models() -> None:
    """Poles of oscillators over a step: exp(s h)."""
    toy, stepping = Toy(oscillators((1.0, 3.0), damping=0.2)), fl.Stepping(lifted=True, step=0.3, order=4)
    single = fl.linearize(toy, stepping=stepping)
    family = fl.linearize_along(toy, [toy.start], stepping=stepping)
    np.testing.assert_allclose(family[0].A, single.A, rtol=1e-6, atol=1e-9)
    modes = -0.2 * np.array([1.0, 3.0]) + 1j * np.array([1.0, 3.0]) * np.sqrt(1 - 0.2**2)
    poles = np.exp(0.3 * np.concatenate((modes, modes.conj())))
    np.testing.assert_allclose(np.sort_complex(family[0].eigenvalues()), np.sort_complex(poles), rtol=1e-5)
    assert family.sample_time == 0.3


def test_a_sweep_at_singular_configurations_has_their_frequencies() -> None:
    """w^2 = 6g/5 and 2g over the enlarged set of velocities (González et al.)."""
    family = fl.sweep(four_bar(singular=True), {"phi": [0.0]}, at_singularity=True, settings={"w": 0.0})
    assert family.ok.all()
    squares = sorted({round(abs(s) ** 2, 6) for s in family[0].eigenvalues()})
    np.testing.assert_allclose(squares, [1.2 * 9.81, 2 * 9.81], rtol=1e-7)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (SWING, {"formulation": "mcs"}, "has no accessible mass matrix"),
        (SWING, {"at_singularity": True}, "at_singularity=True needs a native model"),
        (SWING, {"stepping": fl.Stepping(lifted=True)}, "no base period to lift it over"),
        (SWING, {"stepping": fl.Stepping(lifted=True), "hold_modes": True}, "hold_modes=True is for model exchange"),
        (SWING, {"coordinates": "tangent", "parameters": ["k"]}, "parameters= and coordinates= exclude each other"),
        (skate(), {"formulation": "rcs"}, "mass matrix|one on velocities"),
        (Toy(oscillators((1.0, 3.0))), {"at_singularity": True}, "not for models that are stepped"),
        (Toy(oscillators((1.0, 3.0))), {"parameters": ["k"]}, "require a continuous model"),
        (Toy(oscillators((1.0, 3.0))), {"hold_modes": True}, "hold_modes=True is for model exchange"),
    ],
    ids=lambda value: value.info.name if isinstance(value, fl.Model) else None,
)
def test_a_sweep_rejects_before_its_first_point_what_suits_no_point(
    model: fl.Model, options: dict[str, Any], message: str
) -> None:
    axis = (*model.states.names, *model.inputs.names)[0]
    with pytest.raises(fl.UsageError, match=message):
        fl.linearize(model, **options)
    with pytest.raises(fl.UsageError, match=message):
        fl.sweep(model, {axis: [0.1, 0.2]}, **options)


def test_a_sweep_with_a_formulation_may_begin_at_a_singular_configuration() -> None:
    family = fl.sweep(four_bar(singular=True), {"phi": [0.0, 0.8]}, formulation="rcs", settings={"w": 0.0})
    assert family.ok.any()


def test_derivatives_by_parameters_take_tangent_coordinates_that_are_named() -> None:
    linear = fl.linearize(SWING, coordinates="tangent", independent=["x", "v"], parameters=["k"])
    np.testing.assert_allclose(linear.derivatives["k"].A, [[0.0, 0.0], [-1.0, 0.0]], atol=1e-12)


def test_options_travel_to_the_processes_of_a_sweep() -> None:
    source = "fmilin.systems:cartesian_pendulum()"
    (name, *_) = cartesian_pendulum().parameters
    axes = {"x": [0.1, 0.3, 0.5]}
    here = fl.sweep(source, axes, parameters=[name], descriptor=True)
    processes = fl.sweep(source, axes, parameters=[name], descriptor=True, jobs=2)
    np.testing.assert_allclose(processes.derivatives[name].A, here.derivatives[name].A)
    assert processes[0].descriptor is not None


# -- tangent spaces that are found from numbers -------------------------------------------------------------------


def test_a_linear_model_on_a_tangent_space_has_the_derivatives_of_one_side() -> None:
    """z' = x' keeps z - x: without the constraint, x and v move; d|x|/dx is -1 on the left and +1 on the right."""
    model = OdeModel("slave", {"x": "v", "v": "-abs(x) - v + F", "z": "v"}, inputs=["F"])
    with pytest.raises(fl.NumericalError, match="kink"):
        linearize_on_tangent(model)
    for side, sign in (("left", -1.0), ("right", 1.0)):
        linear = linearize_on_tangent(model, one_sided=side)  # type: ignore[arg-type]
        single = fl.linearize(model, one_sided=side)  # type: ignore[arg-type]
        np.testing.assert_allclose(linear.A, single.A, atol=1e-9)
        assert linear.A[1, 0] == pytest.approx(-sign, rel=1e-7)


def test_a_linear_model_on_a_tangent_space_keeps_inaccurate_entries() -> None:
    """y is x in stairs of an eighth, with an edge beside the equilibrium."""
    stairs = FunctionModel(
        "stairs", {"x": 0.0}, lambda t, x, u: [-x[0]], outputs={"y": lambda t, x, u: np.floor(8 * x[0] + 3.28) / 8}
    )
    with pytest.raises(fl.NumericalError, match="cannot be determined"):
        linearize_on_tangent(stairs)
    kept = linearize_on_tangent(stairs, keep_inaccurate=True)
    np.testing.assert_array_equal(kept.C, fl.linearize(stairs, keep_inaccurate=True).C)


def test_a_linear_model_on_a_tangent_space_holds_the_modes_at_an_event() -> None:
    with pytest.raises(fl.NumericalError):
        linearize_on_tangent(stuck())
    np.testing.assert_allclose(linearize_on_tangent(stuck(), hold_modes=True).A, [[-2.0]], rtol=1e-8)


def test_a_linear_model_on_a_tangent_space_of_a_stepped_model_takes_its_stepping() -> None:
    toy = Toy(oscillators((1.0, 3.0), damping=0.2))
    stepping = fl.Stepping(step=0.3, order=4)
    linear = linearize_on_tangent(toy, stepping=stepping)
    single = fl.linearize(toy, stepping=stepping)
    np.testing.assert_allclose(linear.eigenvalues(), single.eigenvalues(), rtol=1e-6)
    with pytest.raises(fl.UsageError, match="lifted=True makes a discrete one"):
        linearize_on_tangent(toy, stepping=fl.Stepping(lifted=True, step=0.3))


# -- loops -------------------------------------------------------------------------------------------------------


def loop(plant: fl.Model, gain: float = 3.0) -> ConnectedModel:
    law = control.ss([], [], [], [[gain]], inputs="u", outputs="y")
    return fl.connect({"plant": plant, "law": law}, [("plant.x", "law.u", -1.0), ("law.y", "plant.F")])


def with_output(model: OdeModel, text: str) -> OdeModel:
    return OdeModel("plant", {"x": "v", "v": text}, inputs=["F"], parameters={"k": 4.0}, outputs={"x": "x"})


def test_a_loop_on_one_side_of_a_kink() -> None:
    """L(0) = -3/(k sign): the static gain of the plant on each side of |x|."""
    system = loop(with_output(KINK, "-k*abs(x) - v + F"))
    with pytest.raises(fl.NumericalError, match="kink"):
        fl.loop_transfer(system, "plant.F")
    for side, sign in (("left", -1.0), ("right", 1.0)):
        L = fl.loop_transfer(system, "plant.F", one_sided=side)  # type: ignore[arg-type]
        assert L.to_control()(0).real == pytest.approx(-3.0 / (4.0 * sign), rel=1e-6)
        S = fl.sensitivity(system, "plant.F", one_sided=side)  # type: ignore[arg-type]
        assert S.to_control()(0).real == pytest.approx(1 / (1 + 3.0 / (4.0 * sign)), rel=1e-6)


def test_a_loop_keeps_inaccurate_entries() -> None:
    parts = Parts(["x"], [0.41], lambda t, x, u: -x + u, ["F"], ["x"], lambda t, x, u: np.floor(x * 8) / 8)
    system = loop(HandModel(parts))
    with pytest.raises(fl.NumericalError, match="cannot be determined"):
        fl.loop_transfer(system, "plant.F")
    L = fl.loop_transfer(system, "plant.F", keep_inaccurate=True)
    assert "accuracy" in [warning.kind for warning in L.warnings]


def test_a_loop_has_derivatives_by_parameters_of_members() -> None:
    """L(0) = -3/(k cos x), so dL/dk = 3/k^2 at rest."""
    system = loop(with_output(SWING, "-k*sin(x) - v + F"))
    (name,) = [parameter for parameter in system.parameters if parameter.endswith("k")]
    L = fl.loop_transfer(system, "plant.F", parameters=[name])
    d, inverse = L.derivatives[name], np.linalg.inv(-L.A)
    slope = d.C @ inverse @ L.B + L.C @ inverse @ (d.A @ inverse @ L.B + d.B) + d.D
    assert slope[0, 0] == pytest.approx(3.0 / 16.0, rel=1e-8)
    family = fl.sweep(system, {name: [2.0, 4.0]}, loop_at="plant.F", parameters=[name])
    np.testing.assert_allclose(family.derivatives[name].A[1], d.A, atol=1e-9)


def test_a_sweep_of_loops_rejects_what_a_loop_does_not_take() -> None:
    system = loop(with_output(SWING, "-k*sin(x) - v + F"))
    with pytest.raises(fl.UsageError, match=r"formulation= has no meaning in loop_transfer\(\)"):
        fl.sweep(system, {"plant.k": [2.0]}, loop_at="plant.F", formulation="mcs")
    with pytest.raises(fl.UsageError, match="The inputs and outputs of a loop are its wires"):
        fl.sweep(system, {"plant.k": [2.0]}, loop_at="plant.F", outputs=["plant.x"])
    with pytest.raises(fl.UsageError, match="The inputs and outputs of a loop are its wires"):
        fl.sweep(system, {"plant.k": [2.0]}, loop_at="plant.F", inputs=["plant.F"])


def test_an_opened_system_has_the_signals_that_are_chosen() -> None:
    system = loop(with_output(SWING, "-k*sin(x) - v + F"))
    linear = fl.opened(system, "plant.F", inputs=["plant.F"], outputs=["der(plant.v)"])
    assert (linear.inputs.names, linear.outputs.names) == (("plant.F",), ("der(plant.v)",))
    np.testing.assert_allclose(linear.D, [[1.0]], atol=1e-9)


# -- along periodic motions, over boxes of parameters, for explanations -----------------------------------------


def test_floquet_multipliers_do_not_depend_on_how_derivatives_are_taken() -> None:
    model = OdeModel("Mathieu", {"x": "v", "v": "-(1.2 + 0.3*cos(2*time))*x"})
    orbit = fl.periodic_orbit(model, period=np.pi)
    exact = fl.linearize_periodic(model, orbit, points=16)
    for options in ({"one_sided": "left"}, {"derivatives": "differences", "hold_modes": True}):
        periodic = fl.linearize_periodic(model, orbit, points=16, **options)
        np.testing.assert_allclose(periodic.A, exact.A, atol=1e-6)
    chart = fl.floquet_chart(model, {"x": [0.0]}, period=np.pi, points=16, derivatives="differences")
    assert chart.stable.all()


def test_a_box_of_parameters_has_the_coordinates_and_signals_that_are_chosen() -> None:
    model = OdeModel(
        "cart",
        {"s": "v", "v": "F + G - k*s - v"},
        inputs=["F", "G"],
        parameters={"k": 4.0},
        outputs={"y": "s", "z": "v"},
    )
    options = fl.Linearization(inputs=["G"], outputs=["z"])
    uncertain = fl.uncertain(model, None, {"k": (3.0, 5.0)}, linearization=options)
    assert uncertain.M.inputs.names[-1:] == ("G",)
    assert uncertain.M.outputs.names[-1:] == ("z",)
    plain = fl.uncertain(model, None, {"k": (3.0, 5.0)})
    np.testing.assert_allclose(uncertain.M.A, plain.M.A)
    goal = fl.design.ModeGoal(damping=0.5)
    placed = fl.design.place_modes(model, {"k": (0.1, 5.0)}, goal, linearization=options)
    assert placed.linear.inputs.names == ("G",)
    assert placed.parameters["k"] == pytest.approx(1.0, rel=1e-4)  # 1/(2 sqrt(k)) = 0.5
    w = np.array([0.5, 1.0, 2.0])
    measured = 1j * w / (3.0 - w**2 + 1j * w)  # from G to v with k = 3
    fit = fl.design.identified_parameters(model, {"k": (0.5, 5.0)}, w, measured, linearization=options)
    assert fit.parameters["k"] == pytest.approx(3.0, rel=1e-6)


def test_a_channel_is_explained_on_one_side_of_a_kink() -> None:
    """y = max(u, 0) at u = 0 answers on the right only."""
    model = OdeModel("diode", {"x": "-x + (u + abs(u))/2"}, inputs=["u"], outputs={"y": "x"})
    assert fl.explain(model, None, "u", "y", one_sided="right").kind == "not zero"
    assert fl.explain(model, None, "u", "y", one_sided="left").kind != "not zero"


def test_a_cosimulation_takes_derivatives_of_its_members_on_one_side() -> None:
    system = loop(with_output(KINK, "-k*abs(x) - v + F"))
    with pytest.raises(fl.NumericalError, match="kink"):
        fl.cosimulated(system, step=0.01)
    found = {side: fl.cosimulated(system, step=0.01, one_sided=side) for side in ("left", "right")}
    assert found["left"].plant.A[1, 0] == pytest.approx(4.0 - 3.0, rel=1e-6)
    assert found["right"].plant.A[1, 0] == pytest.approx(-4.0 - 3.0, rel=1e-6)


def test_an_empty_list_is_the_default_of_an_option_without_meaning() -> None:
    model = OdeModel("lag", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    options: dict[str, Any] = {"parameters": []}
    assert fl.explain(model, None, "u", "y", **options).kind == fl.explain(model, None, "u", "y").kind


def test_a_solver_tolerance_of_zero_is_that_of_the_solver() -> None:
    from fmilin.options import FmuOptions

    assert FmuOptions(solver_tolerance=0.0).solver_tolerance is None
