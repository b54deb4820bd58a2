"""What small functions of many rooms return: one line each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy import sparse

from fmilin.adapters import Foot, unknown_foot_error
from fmilin.cli.linear_models import name_file
from fmilin.cli.options import names
from fmilin.cli.sweep import read_axes
from fmilin.codegen.graph_evaluator import Evaluator
from fmilin.composition.system_declaration import qualify, split
from fmilin.constraints.expressions import parse
from fmilin.errors import nearest_names
from fmilin.export.for_people import short
from fmilin.fmi.platforms import machines
from fmilin.fmi.read.stepped_model import base_period
from fmilin.fmi.write import variables
from fmilin.fmi.write.description_writer import base_unit
from fmilin.fmi.write.symbolic_fmu import compute_token, to_identifier
from fmilin.formats import listed
from fmilin.formulations.sparse.elimination import sparse_null_space
from fmilin.formulations.sparse.nearest import Around, eigenvalues_near
from fmilin.manifold.invariants import STEP, differentiate_central
from fmilin.model.model_files import read_constraints
from fmilin.models.contacts import parse_feet
from fmilin.models.mechanism.source_lines import find_lines
from fmilin.models.sparse.numeric_equations import Pattern
from fmilin.report.formulations import factor_structure
from fmilin.report.numbers import rough, round_digits, value_with_unit
from fmilin.signals import legal_name, original_name, rate_unit
from fmilin.systems import four_bar_form


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (lambda: name_file(Path("plant.mo"), 0.5).name, "plant_t0.5.mo"),
        (lambda: names("q[1,2],der(v),`a, b`", "--outputs"), ["q[1,2]", "der(v)", "a, b"]),
        (lambda: names("theta=atan2(abs(x),-y),v", "--independent"), ["theta=atan2(abs(x),-y)", "v"]),
        (lambda: read_axes(["v=0:1:3", "q[1]=[1,2.5]"]), {"v": [0.0, 0.5, 1.0], "q[1]": [1.0, 2.5]}),
        (lambda: qualify("plant", "pin.x"), "plant.pin.x"),
        (lambda: qualify("plant", "der(v)"), "der(plant.v)"),
        (lambda: split("der(a.b.x)", ["a", "a.b"]), ("a.b", "der(x)")),
        (
            lambda: [machine.fmi3_folder for machine in machines(["win64", "darwin64"])],
            ["x86_64-windows", "x86_64-darwin", "aarch64-darwin"],
        ),
        (lambda: base_period([0.02, 0.03]), 0.06),
        (lambda: to_identifier("2 masses"), "model_2_masses"),
        (lambda: compute_token([b"A", b"B"]) == compute_token([b"AB"]), False),
        (lambda: variables.legal_name("two\nlines"), "two_lines"),
        (lambda: nearest_names("pin.y", ["pin.x", "pin.vx", "mass"]), ("pin.x", "pin.vx")),
        (
            lambda: [rate_unit(unit) for unit in ("rad", "m/s", "m/s3", "1", "N.m/rad", "")],
            ["rad/s", "m/s2", "m/s4", "1/s", "N.m/rad/s", ""],
        ),
        (lambda: legal_name("body.frame_a.r[1]"), "body/frame_a/r[1]"),
        (lambda: original_name("body/frame_a/r[1]"), "body.frame_a.r[1]"),
        (lambda: parse("x^2 + pin.y**2 - `strange name`").names, ("x", "pin.y", "strange name")),
        (
            lambda: parse_feet(["FL", "sole:flat"]),
            (Foot("FL", flat=False, at="contact"), Foot("sole", flat=True, at="contact")),
        ),
        (
            lambda: str(unknown_foot_error("FL:falt", ["FL", "FR"], "a body")),
            "'FL:falt' is not a way to hold a foot: write 'FL:point', 'FL:flat', 'FL:center', 'FL:lowest'.",
        ),
        (lambda: find_lines("[[body]]\nmass = 1").find(("body", 0, "inertia")), 1),
        (lambda: [short(v) for v in (0.0, -0.0, 1 / 3, -9.81, 1e-20)], ["0", "0", "0.333333", "-9.81", "1e-20"]),
        (lambda: listed("family"), ".nc .mat .npz .json .m"),
        (
            lambda: listed("linear model"),
            ".mat .npz .json .fmu .m .c .mo .tex .txt, _simulink.m (Simulink), dslin.mat (Dymola)",
        ),
        (lambda: round_digits(-1e-17 + 2.147676638502278j), 2.1476766j),
        (lambda: [rough(x) for x in (0.03158, 97.66, 103.0, 1.2e-7)], ["0.032", "98", "100", "1.2e-07"]),
        (lambda: value_with_unit(1.5, "m"), "1.5 m"),
        (lambda: value_with_unit(1.5, "rad"), "1.5 rad (85.9437°)"),
        (lambda: value_with_unit(0.0, "rad"), "0 rad"),
        (lambda: value_with_unit(0.5, "1"), "0.5"),
    ],
)
def test_what_is_returned(result: Callable[[], object], expected: object) -> None:
    assert result() == expected


def test_units_in_base_units() -> None:
    torque, speed = base_unit("N.m/rad"), base_unit("km/h")
    assert torque is not None
    assert torque.exponents == (1, 2, -2, 0, 0, 0, 0, -1)
    assert speed is not None
    assert speed.factor == pytest.approx(1 / 3.6, rel=1e-15)


def test_a_slope_by_the_difference_of_order_eight() -> None:
    assert abs(differentiate_central(lambda s: np.array([np.exp(s)]), STEP)[0] - 1.0) < 1e-13


def test_constraints_of_a_text() -> None:
    text = b'[[constraint]]\nexpression = "x^2 + y^2 - L^2"\nname = "rod"'
    assert [c.label for c in read_constraints(text, "rod.toml").constraints] == ["rod"]


def test_lines_of_keys() -> None:
    lines = find_lines('[[body]]\nmass = 1\n[[body]]\nname = "rod"\ninertia = {xx = 1,\n  yy = 2}')
    assert (lines.of["body", 1, "name"], lines.of["body", 1, "inertia", "yy"]) == (4, 6)


def test_sparse_null_space_of_a_chain() -> None:
    R = sparse_null_space(sparse.csr_array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])).R
    assert R.toarray().ravel().tolist() == [1.0, 1.0, 1.0]


def test_two_eigenvalues_of_a_long_chain() -> None:
    found = eigenvalues_near(four_bar_form(loops=500), "rcs", around=Around(count=1))
    assert found.eigenvalues.imag.tolist() == pytest.approx([-1.313415974, 1.313415974], abs=1e-8)


def test_values_of_a_place_add_up() -> None:
    pattern = Pattern([0, 1, 1], [0, 1, 1], (2, 2))
    assert pattern.dense(np.array([1.0, 2.0, 3.0])).tolist() == [[1.0, 0.0], [0.0, 5.0]]


def test_columns_in_matrices_out() -> None:
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    f = Evaluator([x, p], [p * x, ca.jacobian(p * x[0], x)])
    product, slope = f(np.array([1.0, 2.0]), np.array([3.0]))
    assert product.tolist() == [[3.0], [6.0]]
    assert slope.tolist() == [[3.0, 0.0]]


def test_an_arrow_fills_nothing() -> None:
    arrow = sparse.csc_array([[4.0, 1, 1], [1, 4, 0], [1, 0, 4]])
    assert len(factor_structure(arrow)[0]) == 6
