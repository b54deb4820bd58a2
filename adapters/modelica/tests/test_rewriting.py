"""Transformations of Modelica text, one by one: what they write, and that lines stay where they are."""

from __future__ import annotations

from fmilin_modelica.outer_members import list_outer_members, write_outer_members_as_variables
from fmilin_modelica.rewriting import (
    rewrite,
    unwrap_local_bases,
    write_derivatives_of_variables,
    write_evaluations_of_parameters,
)

TABLES = """model Clutch
  parameter Real mu_pos[:, 2] = [0, 0.5]; // parameter Real no = getTable1DValue(id, 1, 0);
protected
  final parameter Real mu0 =
    getTable1DValue(tableID, 1, 0) "Friction";
  parameter SI.Torque least(min = 0)=1e-4*mu0*fn;
  parameter Real other = 2;
equation
  mu = if smoothness == 1 then getTable1DValue(tableID, 1, w) else 0;
end Clutch;
"""


def test_values_of_tables_get_an_equation_and_so_do_parameters_that_depend_on_them():
    written = rewrite(TABLES)
    assert written.count("\n") == TABLES.count("\n")
    lines = [" ".join(line.split()) for line in written.splitlines()]
    assert lines[3:6] == [
        "final Real mu0 ; equation mu0 =",
        'getTable1DValue(tableID, 1, 0) "Friction"; protected',
        "SI.Torque least(min = 0); equation least =1e-4*mu0*fn; protected",
    ]
    assert written.splitlines()[6:] == TABLES.splitlines()[6:]
    assert written.splitlines()[:3] == TABLES.splitlines()[:3]


DERIVATIVES = """model M "der(u*v)"
  Real y = der(a*3 + 1);
equation
  der(a - b[2].c) = der(x) + der(y[1]); // der(a*b)
  der(m*v)
    = f;
  for i in 1:2 loop
    der(c[i]*2) = 1;
  end for;
end M;
"""


def test_derivatives_of_expressions_become_those_of_variables():
    assert rewrite(DERIVATIVES).splitlines() == [
        'model M "der(u*v)"',
        "  Real der_argument_1 = a*3 + 1; Real y = der(der_argument_1);",
        "protected Real der_argument_2 = m*v; equation",
        "  (der(a)-der(b[2].c)) = der(x) + der(y[1]); // der(a*b)",
        "  der(der_argument_2)",
        "    = f;",
        "  for i in 1:2 loop",
        "    der(c[i]*2) = 1;",
        "  end for;",
        "end M;",
    ]


PARAMETERS = """package P
  model Outer
    model Inner
      Real L, x;
    equation
      der(x - L) = 0;
    end Inner;
    parameter Real L = 2, k(min = 0) = 1;
    constant Real c[3](each unit = "m") = {1, 2, 3};
    Real x, r[3], h;
    parameter Body body(h = 3);
  equation
    der(x - L) = -x;
    der(-L + x) = der(L);
    der(r - c) = -r;
    der(x - h) = der(x - k);
  end Outer;
end P;
"""


def test_parameters_of_the_class_have_no_derivative():
    """The parameter k, the second one of its clause, is left to the other way; h is a variable."""
    assert [line.strip() for line in rewrite(PARAMETERS).splitlines() if "der(" in line] == [
        "(der(x)-der(L)) = 0;",
        "(der(x)) = -x;",
        "(der(x)) = der(L);",
        "(der(r)) = -r;",
        "(der(x)-der(h)) = (der(x)-der(k));",
    ]
    lines = rewrite("model M\n  Real x;\nequation\n  der(x - b.L) = 1;\nend M;\n", splits_sums=False).splitlines()
    assert lines[2:4] == ["protected Real der_argument_1 = x - b.L; equation", "  der(der_argument_1) = 1;"]


LOCAL_BASE = """model Slider "A slider"
  extends Base;
  encapsulated partial model Base
    "What slides"
    import P.Rigid;
    extends Rigid(s(start = 0));
  equation
    v = der(s);
    annotation (Documentation(info = "(
      )"));
  end Base;
equation
  m*der(v) = 0;
end Slider;
"""


def test_an_encapsulated_class_that_only_the_class_around_extends_gives_it_its_elements():
    assert [line.strip() for line in unwrap_local_bases(LOCAL_BASE).splitlines()] == [
        'model Slider "A slider"',
        "",
        "",
        "",
        "import P.Rigid;",
        "extends Rigid(s(start = 0));",
        "equation",
        "v = der(s);",
        "",
        "",
        "public",
        "equation",
        "m*der(v) = 0;",
        "end Slider;",
    ]
    another = LOCAL_BASE.replace("equation\n  m", "  Base other;\nequation\n  m")
    assert unwrap_local_bases(another) == another


OUTER = """package P
  record Frame
    Real T[2, 2];
  end Frame;
  model World
    Frame R;
    Real g[2];
    Real h;
    parameter Real k[2] = {1, 2};
  end World;
  model Body
    outer World world "The world";
    Shape shape(r = turn(world.R, {1, 0}));
  initial equation
    v = world.k;
  equation
    der(v) = world.g + world.g[1]*world.h;
  end Body;
end P;
"""


def test_classes_read_arrays_and_records_of_outer_components_from_variables_of_their_own():
    """Parameters are found by the front end, as are entries, and scalars that are not in an array constructor."""
    members = list_outer_members([OUTER])
    assert members == {"world": {"R": "Frame {}", "g": "Real {}[2]", "h": "Real {}"}}
    lines = write_outer_members_as_variables(OUTER, members).splitlines()
    assert [line.strip() for line in lines[12:17]] == [
        "Shape shape(r = turn(world_R_of_Body, {1, 0}));",
        "protected Frame world_R_of_Body = world.R; Real world_g_of_Body[2] = world.g; initial equation",
        "v = world.k;",
        "equation",
        "der(v) = world_g_of_Body + world.g[1]*world.h;",
    ]


def test_the_derivative_of_an_array_of_variables_is_an_array_of_derivatives():
    text = "model M\n  Real a, b[2], v[2];\nequation\n  v = der({a, frame.b[1]}); u = der({b[i, j], a});\nend M;\n"
    written = write_derivatives_of_variables(text)
    assert written.splitlines()[3] == "  v = {der(a), der(frame.b[1])}; u = {der(b[i, j]), der(a)};"


EVALUATED = """model M
  parameter Boolean a = true annotation(Evaluate=true);
  Boolean b "Evaluate" annotation(Dialog, Evaluate = true);
  function f
    input Boolean c annotation(Evaluate=true), d;
  end f;
end M;
"""


def test_variables_are_not_annotated_as_parameters_to_be_evaluated():
    assert write_evaluations_of_parameters(EVALUATED).splitlines() == [
        "model M",
        "  parameter Boolean a = true annotation(Evaluate=true);",
        '  Boolean b "Evaluate" annotation(Dialog, __fmilin_Evaluate = true);',
        "  function f",
        "    input Boolean c annotation(__fmilin_Evaluate=true), d;",
        "  end f;",
        "end M;",
    ]
