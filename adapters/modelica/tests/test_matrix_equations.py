"""Equations between columns, which the front end counts as one."""

from __future__ import annotations

import numpy as np
from fmilin_modelica.matrix_equations import find_column_equations, write_column_equations

import fmilin as fl

CURRENTS = """model Currents "a rotation of currents, as in machines of power systems"
  parameter Real delta = 0.5;
  Real d(start = 1, fixed = true), q(start = 0, fixed = true), a, b;
equation
  [a; b] = -[sin(delta), cos(delta); -cos(delta), sin(delta)]*[d; q]*
    2;
  [der(d); der(q)] = [a; 3*b];
end Currents;
"""


def test_columns_rotate_currents(tmp_path):
    """A = diag(1, 3) (-2 R), with the matrix R of the text."""
    (tmp_path / "currents.mo").write_text(CURRENTS)
    lin = fl.linearize(fl.load(str(tmp_path / "currents.mo")))
    sine, cosine = np.sin(0.5), np.cos(0.5)
    expected = np.diag([1.0, 3.0]) @ (-2 * np.array([[sine, cosine], [-cosine, sine]]))
    np.testing.assert_allclose(lin.A, expected, rtol=1e-14)


def test_columns_become_vectors_and_other_matrices_stay():
    lines = write_column_equations(CURRENTS).splitlines()
    assert lines[4] == "  {a, b} = -[sin(delta), cos(delta); -cos(delta), sin(delta)]*{d, q}*"
    for kept in ("[a, b; c, d] = M*[x; y];", "x[1] = [a; b]*[c, d];", "// ; [a; b] = [c; d];", "[a] = [b];"):
        text = f"equation\n  z = 1;\n  {kept}\n"
        assert write_column_equations(text) == text
        assert find_column_equations({}, text) is None
    text = "equation\n  [a; b] = A[1:2, [1; 2]]*[c; d]\n;"
    assert write_column_equations(text) == "equation\n  {a, b} = A[1:2, [1; 2]]*{c, d}\n;"
