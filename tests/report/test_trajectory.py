"""A motion as a picture and as a few lines."""

from __future__ import annotations

import io
import struct
from dataclasses import replace

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.report.figures import render_figure
from fmilin.report.terminal import print_to_stream
from fmilin.report.trajectory_report import show_trajectory, trajectory_figure
from fmilin.systems import cartesian_pendulum
from tests.simulation.hybrids import Ball


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_a_panel_for_each_unit_and_one_for_the_drift() -> None:
    motion = fl.simulate(cartesian_pendulum(angle=1.0), stop_time=0.5, energy="vx^2 + vy^2")
    _, with_drift = size_of(render_figure(trajectory_figure(motion, title="pendulum")))  # rad, m/s2, J, drift
    bare = replace(motion, drift=motion.drift[:, :0], energy=motion.energy[:0])
    _, without = size_of(render_figure(trajectory_figure(bare, title="pendulum")))
    assert with_drift - without == 2 * 286


def test_states_are_drawn_where_there_are_no_outputs() -> None:
    ball = fl.simulate(Ball(), stop_time=2.2, step=0.02)
    width, height = size_of(render_figure(trajectory_figure(ball, title="ball")))
    assert width > 1000
    assert 400 < height < 600


def test_many_quantities_and_no_states_at_all() -> None:
    many = OdeModel("many", {}, inputs=["u"], outputs={f"y{i}": f"{i}*u" for i in range(12)})
    motion = fl.simulate(many, stop_time=1.0, inputs={"u": 1.0})
    size_of(render_figure(trajectory_figure(motion, title="many")))
    text = io.StringIO()
    print_to_stream(text, show_trajectory, motion, name="many")
    assert "y11" in text.getvalue()


def test_events_and_switches_are_told() -> None:
    text = io.StringIO()
    print_to_stream(text, show_trajectory, fl.simulate(Ball(), stop_time=2.95, step=0.5), name="ball")
    assert "1 s (event indicator 1)" in text.getvalue()
    assert "more" in text.getvalue()
    text = io.StringIO()
    turning = fl.simulate(cartesian_pendulum(rate=7.0), stop_time=1.0, stabilization="local")
    print_to_stream(text, show_trajectory, turning, name="pendulum")
    assert "x, vx → y, vy" in text.getvalue()
    assert max(map(len, text.getvalue().splitlines())) <= 80
