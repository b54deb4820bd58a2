"""Symmetrical components of quasi-static machines: matrices of phases against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from fmilin_modelica.symmetrical_components import write_symmetrical_components_as_arrays

import fmilin as fl
from fmilin.errors import ModelError

COMPLEX = """record Complex
  Real re, im;
end Complex;
"""
SYMMETRICAL = """package Sym
  function symmetricTransformationMatrix
    input Integer m;
    output Complex T[m, m];
  algorithm
    T := fill(Complex(0, 0), m, m);
  end symmetricTransformationMatrix;
  model Winding "Only the positive sequence of the currents acts, by its derivative"
    parameter Integer m = 3;
    parameter Real L = 0.5, R = 2;
    Complex i[m], s[m];
    Real p(start = 1, fixed = true), q(start = 0.5, fixed = true);
  protected
    final parameter Complex T[m, m] = symmetricTransformationMatrix(m);
    final parameter Integer others[:] = indexNonPositiveSequence(m);
    final parameter Integer positive[:] = indexPositiveSequence(m);
  equation
    for j in 1:m loop
      s[j] = Complex(sum({T[j,k].re*i[k].re - T[j,k].im*i[k].im for k in 1:m}),
                     sum({T[j,k].re*i[k].im + T[j,k].im*i[k].re for k in 1:m}));
    end for;
    for k in 1:size(others, 1) loop
      s[others[k]] = Complex(0, 0);
    end for;
    s[positive[1]] = Complex(p, q);
    L*der(p) = -R*i[1].re;
    L*der(q) = -R*i[2].im;
  end Winding;
end Sym;
"""


def test_the_positive_sequence_of_three_phases(tmp_path, fresh_environment):
    """With p + i q as the positive sequence the current of phase k is a^(k - 1) (p + i q), a = exp(-2 pi i/3)."""
    pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")
    (tmp_path / "Complex.mo").write_text(COMPLEX)
    (tmp_path / "symmetrical.mo").write_text(SYMMETRICAL)
    options = {"library": [tmp_path / "Complex.mo"]}
    linear = fl.linearize(fl.load(f"{tmp_path / 'symmetrical.mo'}:Sym.Winding", options=options))
    a = np.exp(-2j * np.pi / 3)
    np.testing.assert_allclose(linear.A, -4 * np.array([[1, 0], [a.imag, a.real]]), atol=1e-12)
    with pytest.raises(ModelError, match="shape mismatch"):
        fl.load(f"{tmp_path / 'symmetrical.mo'}:Sym.Winding", options=options, parameters={"m": 6})


def test_lines_stay_where_they_stand():
    written = write_symmetrical_components_as_arrays(SYMMETRICAL)
    assert written.count("\n") == SYMMETRICAL.count("\n")
    assert "s[j] = Complex((T_re[j, :]*i.re - T_im[j, :]*i.im)," in written
    assert "Integer others[if mod(m, 2) == 1 then m - 1 else 0] = {k + 1 for k in 1:m - 1};" in written
    assert write_symmetrical_components_as_arrays(COMPLEX) == COMPLEX
