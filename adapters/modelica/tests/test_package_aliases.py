"""Constants, types and functions of packages that a class declares by another name, or redeclares in its base."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

from fmilin_modelica.package_aliases import write_names_of_packages

import fmilin as fl

pytestmark = pytest.mark.usefixtures("fresh_environment")

NETWORK = """package P
  package Systems
    partial package Partial
      constant String name = "none";
      constant Integer n;
      type Voltage = Real(unit = "V", quantity = "Voltage." + name);
      replaceable partial function j
        input Real x[n];
        output Real y[n];
      end j;
    end Partial;
    package Two
      extends Partial(name = "Two", n = 2);
      redeclare function j
        input Real x[n];
        output Real y[n];
      algorithm
        y := {-x[2], x[1]};
      end j;
    end Two;
  end Systems;
  connector Terminal
    replaceable package System = Systems.Partial;
    System.Voltage v[System.n];
    flow Real i[System.n];
    annotation (Documentation(info = "a terminal"));
  end Terminal;
  package Ports
    connector Pin
      extends Terminal(redeclare package System =
        Systems.Two);
    end Pin;
    partial model Port
      package S = Systems.Two;
      Pin pin;
    end Port;
  end Ports;
  model Source
    extends Ports.Port;
    S.Voltage v[S.n];
  equation
    v = {1, 2};
    pin.v = v;
  end Source;
  model Load
    extends Ports.Port;
    Real i[S.n](each start = 0, each fixed = true);
  equation
    pin.i = i;
    der(i) = -i + S.j(i) + pin.v;
  end Load;
  model Network
    Source source;
    Load load;
  equation
    connect(source.pin, load.pin);
  end Network;
end P;
"""


def test_sizes_types_and_functions_come_from_the_package_behind_another_name(tmp_path):
    path = tmp_path / "network.mo"
    path.write_text(NETWORK)
    model = fl.load(f"{path}:P.Network")
    np.testing.assert_allclose(fl.linearize(model).eigenvalues(), [-1 - 1j, -1 + 1j])
    assert model.with_interface(None, ["source.v[2]"]).outputs[0].unit == "V"


def test_names_behind_packages_are_written_in_the_line_where_they_stand():
    written = write_names_of_packages({}, NETWORK, "P.Network")(NETWORK).splitlines()
    lines = NETWORK.splitlines()
    changed = {k: line.strip() for k, line in enumerate(written) if line != lines[k]}
    assert len(written) == len(lines)
    assert changed[lines.index("    S.Voltage v[S.n];")] == ".P.Systems.Partial.Voltage v[2];"
    assert changed[lines.index("    der(i) = -i + S.j(i) + pin.v;")] == "der(i) = -i + .P.Systems.Two.j(i) + pin.v;"
    pin = lines.index("    connector Pin") + 1
    assert changed[pin] == ".P.Systems.Partial.Voltage v[2] ; flow Real i[2] ;"


def test_packages_that_a_component_redeclares_keep_their_names():
    text = NETWORK.replace("Load load;", "Load load(redeclare package S = Systems.Two);")
    written = write_names_of_packages({}, text, "P.Network")(text)
    assert "der(i) = -i + S.j(i) + pin.v;" in written
