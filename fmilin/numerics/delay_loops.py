"""The loops of a system with delays: strongly connected parts, each of which has eigenvalues of its own."""

from __future__ import annotations

from fmilin.errors import UsageError
from fmilin.numerics.components import strong_components
from fmilin.numerics.decompositions import compute_balancing_scales
from fmilin.numerics.delay_form import DelayForm
from fmilin.support.dataclass import dataclass


@dataclass(frozen=True, eq=False)
class LoopPart:
    """A strongly connected part of a system: its states, and the channels of delays on its loops."""

    states: list[int]
    channels: list[int]


def list_loop_parts(form: DelayForm) -> list[LoopPart]:
    """Return the strongly connected parts of a system that have eigenvalues."""
    n = len(form.A)
    pattern = form.loop != 0
    parts = []
    for part in strong_components(pattern):
        states = [int(i) for i in part if i < n]
        channels = [int(i) - n for i in part if i >= n]
        is_open = len(part) == 1 and channels and not pattern[part[0], part[0]]
        if not is_open:
            parts.append(LoopPart(states, channels))
    return parts


def require_retarded(form: DelayForm) -> None:
    """Raise UsageError for a neutral system."""
    channels = form.find_neutral_channels()
    if channels:
        seconds = ", ".join(f"{form.delays[i]:g} s" for i in channels)
        raise UsageError(
            f"The system is neutral: the delays of {seconds} lie on a loop without a state, so that infinitely many "
            "eigenvalues lie near a vertical line and jumps never become smooth. Eigenvalues and time responses are "
            "those of retarded systems: put a filter or an actuator with a state into the loop. Its frequency response "
            "is exact as it is."
        )


def balance_form(form: DelayForm) -> DelayForm:
    """Return an autonomous form with scaled states and channels, so that rows and columns are of like size."""
    n = len(form.A)
    scales = compute_balancing_scales(form.loop)
    loop = form.loop * scales / scales[:, None]
    return DelayForm(
        A=loop[:n, :n],
        B1=form.B1,
        B2=loop[:n, n:],
        C1=form.C1,
        C2=loop[n:, :n],
        D11=form.D11,
        D12=form.D12,
        D21=form.D21,
        D22=loop[n:, n:],
        delays=form.delays,
        errors=form.errors * scales / scales[:, None],
    )
