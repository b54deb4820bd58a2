"""Places in messages on errors of the front end, and functions with loops that are written as expressions."""

from __future__ import annotations

import numpy as np
import pytest
from fmilin_modelica.error_messages import describe_crash, describe_error
from fmilin_modelica.local_functions import write_names_of_local_functions
from fmilin_modelica.loops import write_loops_as_expressions
from fmilin_modelica.places import describe_declarations
from fmilin_modelica.sources import Source

import fmilin as fl
from fmilin.cli.main import main
from fmilin.errors import KinkError

LIBRARY = """package Lib "with a function f"
  function f
    input Integer n;
    output Integer y;
  algorithm
    y := n;
  end f;

  model Plant
    Real x;
    Motor motor;
  end Plant;
end Lib;
"""


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("unsupported: `Lib.f` contains a statement", "package.mo:2: "),
        ("unevaluable array dimensions for 'motor.buf'", "package.mo:11: "),
        ("something else [library/Lib/package.mo:4:7]", "package.mo:4: "),
        ("something else", "package.mo:9: "),
    ],
)
def test_an_error_in_a_library_has_file_line_and_limit(tmp_path, words, place):
    file = tmp_path / "package.mo"
    file.write_text(LIBRARY)
    source = Source(None, "Lib.Plant", (str(tmp_path),))
    message = describe_error(source, "", "Lib.Plant", words, {"Lib 2.0.0/package.mo": file})
    assert message.startswith(f"{place}'Lib.Plant' cannot be read as Modelica: ")
    assert "This is a limit of the front end" in message
    assert describe_crash(source, "panic", {"Lib/package.mo": file}).startswith("package.mo:9: The Modelica front end")


FUNCTIONS = """model M
  function first
    input Boolean b[:];
    output Integer index;
  algorithm
    index := 0;
    for i in 1:size(b, 1) loop
      if b[i] then
        index := i;
        return;
      end if;
    end for;
  end first;
  function isPower
    input Integer i;
    output Boolean result;
  protected
    Integer target;
    Integer power;
  algorithm
    if mod(i, 2) == 1 then
      result := i == 1;
    else
      target := div(i, 2);
      power := 1;
      while power < target loop
        power := power * 2;
      end while;
      result := target == power;
    end if;
  end isPower;
  Real x(start = 1, fixed = true);
  output Real y = first({x > 3, x > 0.5, x > 0.1}) + (if isPower(8) and not isPower(6) and isPower(1) then 10 else 0)*x;
equation
  der(x) = -x;
end M;
"""


def test_functions_with_while_and_with_return_in_a_loop(tmp_path):
    """The first true one of three is the second, and 8 and 1 are powers of two where 6 is none."""
    written = write_loops_as_expressions(FUNCTIONS)
    assert written.count("\n") == FUNCTIONS.count("\n")
    assert "while" not in written
    assert "return" not in written
    (tmp_path / "m.mo").write_text(FUNCTIONS)
    lin = fl.linearize(fl.load(str(tmp_path / "m.mo")), outputs=["y"])
    assert lin.point.outputs["y"] == pytest.approx(12.0)
    assert lin.C[0, 0] == pytest.approx(10.0)


@pytest.mark.parametrize("outer", ["return;", ""])
def test_the_first_one_in_two_loops_stays_as_it_is(outer):
    text = f"for j in 1:2 loop for i in 1:3 loop if b[i] then k := i; {outer} end if; end for; end for; end f;"
    assert write_loops_as_expressions(text) == text


LOCAL = """package P
  model Two
    Real u[2] = {x, -x};
    Real x(start = 1, fixed = true), q = position(u, 1);
    function position
      input Real u[2];
      input Real position_of = 1;
      output Real y;
    algorithm
      y := u[1];
    end position;
  equation
    der(x) = -q;
  end Two;
end P;
"""


def test_functions_of_models_have_names_of_their_own():
    written = write_names_of_local_functions(LOCAL).splitlines()
    assert written[3] == "    Real x(start = 1, fixed = true), q = position_of_Two(u, 1);"
    assert [line.strip() for line in written if "function" in line or "end pos" in line] == [
        "function position_of_Two",
        "end position_of_Two;",
    ]
    assert write_names_of_local_functions(LOCAL.replace("Real u[2] =", "Real position; Real u[2] =")).count("_Two") == 0


STOP = """package P
  model Stop
    parameter Real c = 10;
    Real s[2](each start = 0, each fixed = true);
  equation
    der(s) = {if s[1] > 0 then -c*s[1] else -s[1], 0};
  end Stop;
  model Contact
    Stop stop;
  end Contact;
end P;
"""


def test_an_error_at_the_point_says_where_the_variables_are_declared(tmp_path, capsys):
    path = tmp_path / "stop.mo"
    path.write_text(STOP)
    model = fl.load(f"{path}:P.Contact")
    with pytest.raises(KinkError, match=r"d der\(stop\.s\[1\]\) / d stop\.s\[1\]") as raised:
        fl.linearize(model)
    assert raised.value.__notes__ == ["'stop.s[1]' is declared at stop.mo:4."]
    assert main(["linearize", f"{path}:P.Contact"]) != 0
    assert capsys.readouterr().err.endswith(" 'stop.s[1]' is declared at stop.mo:4.\n")
    np.testing.assert_allclose(fl.linearize(model, one_sided="right").A, [[-10, 0], [0, 0]], rtol=1e-6)
    with pytest.raises(fl.UsageError) as wrong:
        fl.linearize(model, independent=["stop.s[1]"])
    assert not hasattr(wrong.value, "__notes__")


def test_words_of_a_message_are_not_taken_for_variables():
    places = {"time": "a.mo:1", "s": "a.mo:2", "body.s": "b.mo:3"}
    assert describe_declarations("At a time of 3 s der(body.s) has no value.", places) == (
        "'body.s' is declared at b.mo:3."
    )
    assert describe_declarations("'s' and 'body.s' have no start.", places) == (
        "'s' is declared at a.mo:2, 'body.s' is declared at b.mo:3."
    )
