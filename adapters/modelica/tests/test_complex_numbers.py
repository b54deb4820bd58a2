"""Complex numbers as pairs of real ones: expressions against Python's complex numbers, and a circuit by hand."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import pytest
from fmilin_modelica.complex_arithmetic import write_parts
from fmilin_modelica.complex_expressions import Reference, parse_expression
from fmilin_modelica.complex_numbers import write_complex_as_real
from fmilin_modelica.tokens import Token, read_tokens

import fmilin as fl

NUMBERS = {"v": 0.3 - 1.2j, "w": -0.7 + 0.4j, "z": 2.0 + 0.1j}
REALS = {"a": 1.7, "b": -0.6}
PYTHON = {
    "conj": lambda z: z.conjugate(),
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "arg": cmath.phase,
    "abs": abs,
    "fromPolar": cmath.rect,
    "Complex": complex,
    "j": 1j,
    **{name: getattr(cmath, name) for name in ("exp", "log", "sqrt", "sin", "cos", "sinh", "cosh")},
}


class _Variables:
    """Complex v, w and z; all others are real."""

    def find_reference(self, parts: Reference) -> tuple[bool, int]:
        return parts[0][0] in {*NUMBERS, "j"} and len(parts) == 1, 0

    def is_imaginary_unit(self, parts: Reference) -> bool:
        return parts[0][0] == "j" and len(parts) == 1

    def is_constructor(self, function: str) -> bool:
        return function == "Complex"

    def returns_complex(self, function: str) -> bool:
        return False

    def inline_function(self, function: str, arguments: Sequence[Sequence[Token]]) -> None:
        return None


class _Parts:
    """A complex number with the names of Modelica for its parts."""

    def __init__(self, number: complex) -> None:
        self.re, self.im = number.real, number.imag


@pytest.mark.parametrize(
    "expression",
    [
        "v*w - z/v + a",
        "-v - (w - z)*b",
        "j*a*v/(b + j*w)",
        "(v + w)^2/2",
        "conj(v)*exp(-j*a)",
        "fromPolar(a, b)*Complex(0, a)",
        "abs(v*w)*z + arg(v/w)",
        "real(v*conj(w))*j + imag(z*w)",
        "sqrt(v) + log(w*z)",
        "sin(v)*cos(w) + sinh(z)*cosh(v*w)",
        "a*(b*(v - 2*w))/a",
    ],
)
def test_the_parts_of_an_expression_are_those_of_complex_numbers(expression):
    value = parse_expression(read_tokens(expression), _Variables())
    variables = {name: _Parts(number) for name, number in NUMBERS.items()}
    real = {"sqrt": math.sqrt, "exp": math.exp, "log": math.log, "atan2": math.atan2, "sin": math.sin, "cos": math.cos}
    real |= {"sinh": math.sinh, "cosh": math.cosh}
    parts = [eval(part.replace("^", "**"), {**real, **variables, **REALS}) for part in write_parts(value)]
    expected = eval(expression.replace("^", "**"), {**PYTHON, **NUMBERS, **REALS})
    assert complex(*parts) == pytest.approx(expected, rel=1e-12)


LINES = """model M
  Complex v[2], w "v*w", u = if a > 0 then v[1] else w;
  final parameter Complex k(re(start = 1)) = 2*Complex(1, 2);
  Part part(final z = v[1]*w, x = abs2(w));
  Real p = re(w*
     w);
equation
  v = {w*(i + 1) for i in 1:2};
  for v in 1:2 loop
    x[v] = v*2; // v*w
  end for;
  u.re = v[2].im;
end M;
model Part
  Complex z;
  Real x;
end Part;
"""


def test_equations_bindings_and_modifications_are_written_as_pairs_in_the_same_lines():
    complex_class = "operator record Complex\n  Real re;\n  Real im;\nend Complex;\n"
    written = write_complex_as_real({"Complex.mo": complex_class}, LINES, None)(LINES)
    assert [" ".join(line.split()) for line in written.splitlines()] == [
        "model M",
        'Complex v[2], w "v*w", u ; equation u.re = (if a > 0 then v[1].re else w.re); '
        "u.im = (if a > 0 then v[1].im else w.im); public",
        "final parameter Complex k(re = 2, im = 2*2);",
        "Part part(final z (final re = v[1].re*w.re - (v[1].im*w.im), "
        "final im = v[1].re*w.im + v[1].im*w.re), x = abs2(w));",
        "Real p = re(w*",
        "w);",
        "equation",
        "v.re = {w.re*(i + 1) for i in 1 : 2}; v.im = {w.im*(i + 1) for i in 1 : 2};",
        "for v in 1:2 loop",
        "x[v] = v*2; // v*w",
        "end for;",
        "u.re = v[2].im;",
        *(line.strip() for line in LINES.splitlines()[12:]),
    ]


CIRCUIT = """package P
  connector Pin
    Complex v;
    flow Complex i;
  end Pin;
  partial model TwoPin
    Pin p, n;
    Complex v, i;
  equation
    v = p.v - n.v;
    i = p.i;
    p.i + n.i = Complex(0);
  end TwoPin;
  model Impedance
    extends TwoPin;
    input Complex Z;
  equation
    v = Z*i;
  end Impedance;
  model Source
    extends TwoPin;
  equation
    v = Complex(3, 4);
  end Source;
  model Ground
    Pin p;
  equation
    p.v = Complex(0);
  end Ground;
  function power
    input Complex v[:];
    input Complex i[size(v, 1)];
    output Real p;
  protected
    Integer m = size(v, 1);
  algorithm
    p := sum({v[k].re*i[k].re + v[k].im*i[k].im for k in 1:m});
  end power;
  model Oven "An impedance that its losses heat"
    Real T(start = 2, fixed = true);
    Impedance load(Z = (1 + 0.1*T)*Complex(1, 0) + Complex(0, 1)*2);
    Impedance line(Z = Complex(0.5, 0)*Complex(1, 1));
    Source source;
    Ground ground;
    Complex v[2] = {load.v, line.v};
    Complex i[2] = {load.i, line.i};
    Real P = power(v, i);
  equation
    connect(source.p, line.p);
    connect(line.n, load.p);
    connect(source.n, load.n);
    connect(source.n, ground.p);
    der(T) = P - T;
  end Oven;
end P;
"""


def test_a_circuit_of_phasors_has_the_losses_of_ohms_law(tmp_path, standard_library):
    path = tmp_path / "circuit.mo"
    path.write_text(CIRCUIT, encoding="utf-8")
    model = fl.load(f"{path}:P.Oven", options={"library": [standard_library / "Complex.mo"]})
    lin = fl.linearize(model)
    resistance, reactance = 1.2 + 0.5, 2.5
    size = resistance**2 + reactance**2  # of the impedance, squared; the losses are 25 R/size
    slope = 25 * 0.1 * (1 / size - 2 * resistance**2 / size**2)
    assert lin.A[0, 0] == pytest.approx(slope - 1, rel=1e-9)
    assert lin.f0[0] == pytest.approx(25 * resistance / size - 2, rel=1e-9)


ALIAS = """model A
  import CM = Modelica.ComplexMath;
  Complex j;
  Complex v = CM.j*2;
equation
  j = v;
end A;
"""


def test_the_imaginary_unit_of_an_imported_package_is_one_and_a_variable_of_its_name_is_not():
    complex_class = "operator record Complex\n  Real re;\n  Real im;\nend Complex;\n"
    lines = write_complex_as_real({"Complex.mo": complex_class}, ALIAS, "A")(ALIAS).splitlines()
    assert "CM.j" not in lines[3]
    assert lines[5].replace(" ", "") == "j.re=v.re;j.im=v.im;"
