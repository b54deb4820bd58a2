"""All models of the textbook gate, in the order of the rows of its table."""

from __future__ import annotations

from tests.textbook import circuits_and_processes, mechanics
from tests.textbook.closed_form import MarginsInClosedForm, Textbook

__all__ = ["MODELS", "MarginsInClosedForm", "Textbook"]

MODELS = {
    textbook.name: textbook
    for textbook in (
        circuits_and_processes.rl_circuit(),
        mechanics.mass_spring_damper(),
        mechanics.pendulum_hanging(),
        mechanics.pendulum_upright(),
        circuits_and_processes.input_with_default(),
        circuits_and_processes.output_that_is_a_state(),
        circuits_and_processes.zero_parameter(),
        circuits_and_processes.two_tanks(),
        circuits_and_processes.dc_motor(),
        mechanics.cart_pole(),
        mechanics.ball_and_beam(),
        mechanics.ball_at_rest(),
        mechanics.ball_in_flight(),
        circuits_and_processes.saturated_integrator_inside(),
        circuits_and_processes.saturated_integrator_outside(),
        circuits_and_processes.sampled_pi_loop(),
        circuits_and_processes.capacitor_loop(),
        mechanics.quaternion_body(),
    )
}
