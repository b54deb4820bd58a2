"""The textbook's models in Modelica, without the Standard Library."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import fmilin as fl
from tests.textbook.cells import Cell, Coordinate
from tests.textbook.models import MODELS

__all__ = ["TEXT", "modelica_model"]

TEXT = """package Textbook
  model rl_circuit
    parameter Real R = 2, L = 0.5;
    input Real v = 3;
    output Real current = i;
    output Real coil = v - vR;
    Real i(start = 1.5), vR;
  equation
    vR = R*i;
    L*der(i) = v - vR;
  end rl_circuit;

  model mass_spring_damper
    parameter Real m = 2, k = 8, c = 0.4;
    input Real F(start = 1.6);
    output Real position = x;
    output Real acceleration = der(v);
    Real x(start = 0.2), v(start = 0);
  equation
    der(x) = v;
    m*der(v) + c*v + k*x = F;
  end mass_spring_damper;

  model pendulum "A point on a circle"
    parameter Real m = 1.5, l = 0.8, c = 0.3, g = 9.81;
    parameter Real y0;
    input Real torque;
    output Real angle = atan2(x, -y);
    output Real height = y;
    Real x(start = 0), y(start = y0), vx, vy, tension, tangential;
  equation
    tangential = (torque - c*(vy*x - vx*y)/l^2)/l^2;
    der(x) = vx;
    der(y) = vy;
    m*der(vx) = -tangential*y - tension*x;
    m*der(vy) = tangential*x - tension*y - m*g;
    x^2 + y^2 = l^2;
  end pendulum;

  model pendulum_hanging
    extends pendulum(y0 = -0.8);
  end pendulum_hanging;

  model pendulum_upright
    extends pendulum(y0 = 0.8);
  end pendulum_upright;

  model input_with_default
    input Real u = 2;
    output Real discharge;
    Real h(start = 0.5);
  equation
    discharge = u*h;
    der(h) = 1 - discharge;
  end input_with_default;

  model output_that_is_a_state
    parameter Real T = 0.25, k = 3;
    input Real u(start = 0.5);
    output Real y(start = 1.5, fixed = true);
  equation
    T*der(y) = k*u - y;
  end output_that_is_a_state;

  model zero_parameter
    parameter Real R = 2, K = 0.1, J = 0.004, L = 0;
    input Real U = 1;
    output Real speed = w;
    output Real current = i;
    Real w(start = 10), i;
  equation
    J*der(w) = K*i;
    U = R*i + L*der(i) + K*w;
  end zero_parameter;

  model two_tanks
    parameter Real area = 2, k = 0.5;
    input Real q = 0.6;
    output Real outflow = q2;
    Real h1(start = 2.88), h2(start = 1.44), q12, q2;
  equation
    area*der(h1) = q - q12;
    area*der(h2) = q12 - q2;
    q12 = k*sqrt(h1 - h2);
    q2 = k*sqrt(h2);
  end two_tanks;

  model dc_motor
    parameter Real J = 0.01, L = 0.5, R = 1, b = 0.1, K = 0.1;
    input Real U;
    output Real phi(start = 0);
    Real w, i;
  equation
    der(phi) = w;
    J*der(w) = K*i - b*w;
    L*der(i) = U - R*i - K*w;
  end dc_motor;

  model cart_pole "Cart and bob with the force of the rod between them"
    parameter Real M = 1.2, m = 0.3, l = 0.5, g = 9.81;
    input Real F;
    output Real angle = atan2(xb - x, yb);
    output Real x;
    Real v, xb, yb(start = l), vb, vyb, rod;
  equation
    der(x) = v;
    der(xb) = vb;
    der(yb) = vyb;
    M*der(v) = F + rod*(xb - x);
    m*der(vb) = -rod*(xb - x);
    m*der(vyb) = -m*g - rod*yb;
    (xb - x)^2 + yb^2 = l^2;
  end cart_pole;

  model ball_and_beam
    parameter Real m = 0.5, J = 0.2, g = 9.81;
    input Real torque = 0.4905;
    output Real r(start = 0.1), a;
    Real rv, av;
  equation
    der(r) = rv;
    der(a) = av;
    7/5*m*der(rv) = m*r*av^2 - m*g*sin(a);
    (J + m*r^2)*der(av) + 2*m*r*rv*av + m*g*r*cos(a) = torque;
  end ball_and_beam;

  model ball
    parameter Real m = 0.5, k = 200, g = 9.81;
    input Real F;
    output Real height = h;
    Real h, v;
  equation
    der(h) = v;
    m*der(v) = F - m*g + (if h < 0 then -k*h else 0);
  end ball;

  model ball_at_rest
    extends ball(h(start = -0.024525));
  end ball_at_rest;

  model ball_in_flight "Here the ground is rigid: the velocity is reversed"
    parameter Real m = 0.5, g = 9.81, e = 0.8;
    input Real F;
    output Real height = h;
    Real h(start = 1, fixed = true), v(start = 2, fixed = true);
  equation
    der(h) = v;
    m*der(v) = F - m*g;
    when h <= 0 then
      reinit(v, -e*pre(v));
    end when;
  end ball_in_flight;

  model saturated_integrator
    input Real u;
    output Real y = 2*x;
    Real x;
  equation
    der(x) = if u > 1 then 1 elseif u < -1 then -1 else u;
  end saturated_integrator;

  model saturated_integrator_inside
    extends saturated_integrator(u(start = 0.5));
  end saturated_integrator_inside;

  model saturated_integrator_outside
    extends saturated_integrator(u(start = 2));
  end saturated_integrator_outside;

  model sampled_pi_loop "Its plant"
    parameter Real a = 1, b = 2;
    input Real u;
    output Real y = x;
    Real x;
  equation
    der(x) = -a*x + b*u;
  end sampled_pi_loop;

  model capacitor_loop
    parameter Real R = 1, L = 0.2, C1 = 0.3, C2 = 0.6, C3 = 0.1;
    input Real v = 1.5;
    output Real voltage = u3;
    output Real middle = u2;
    Real i, i12, u1(start = 1), u2(start = 0.5), u3(start = 1.5);
  equation
    L*der(i) = v - R*i - u3;
    C1*der(u1) = i12;
    C2*der(u2) = i12;
    C3*der(u3) = i - i12;
    u1 + u2 = u3;
  end capacitor_loop;

  model quaternion_body
    parameter Real Ix = 0.2, Iy = 0.3, Iz = 0.4;
    input Real Mx, My, Mz;
    output Real rate_x = wx;
    output Real rate_z = wz;
    Real e0(start = 1), e1, e2, e3, wx, wy, wz(start = 5);
  equation
    wx = 2*(e0*der(e1) - e1*der(e0) - e2*der(e3) + e3*der(e2));
    wy = 2*(e0*der(e2) + e1*der(e3) - e2*der(e0) - e3*der(e1));
    wz = 2*(e0*der(e3) - e1*der(e2) + e2*der(e1) - e3*der(e0));
    e0^2 + e1^2 + e2^2 + e3^2 = 1;
    Ix*der(wx) = Mx + (Iy - Iz)*wy*wz;
    Iy*der(wy) = My + (Iz - Ix)*wz*wx;
    Iz*der(wz) = Mz + (Ix - Iy)*wx*wy;
  end quaternion_body;
end Textbook;
"""


def modelica_model(name: str) -> Cell:
    """Return the model of the package above, from a file."""
    folder = Path(tempfile.mkdtemp())
    try:
        file = folder / "Textbook.mo"
        file.write_text(TEXT, encoding="utf-8")
        model = fl.load(f"{file}:Textbook.{name}")
    finally:
        shutil.rmtree(folder)
    if name.startswith("pendulum"):
        scale = -MODELS[name].outputs["height"]
        states = {"q": Coordinate("x", {"q": scale}, 0.0), "w": Coordinate("vx", {"w": scale}, 0.0)}
        return Cell(model, states, guess={"x": 0.3 * scale})
    if name == "cart_pole":
        rod = MODELS[name].parameters["l"]
        bob = {"th": Coordinate("xb", {"x": 1.0, "th": rod}, 0.0), "w": Coordinate("vb", {"v": 1.0, "w": rod}, 0.0)}
        return Cell(model, bob)
    return Cell(model)
