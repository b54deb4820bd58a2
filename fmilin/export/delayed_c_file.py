"""A linear model with delays as C99, or as an FMU around it: the model between the delays, and a ring buffer for each.

The model between the delays is sampled, its inputs held. A delay is d + a samples, d whole and 0 <= a < 1. The
delayed signal is z = z_x + z_u: z_x, which follows from states, is taken as linear between samples, and z_u, which
jumps with the inputs, as constant over a sample. Both are read from the ring between the samples d and d + 1 ago, with
the weights 1 - a and a. For inputs that are held from sample to sample, a delay of whole samples (a = 0) delays z_u
exactly, and the error of everything else is of second order in the sample time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from fmilin.codegen.c_component import (
    ACCUMULATE,
    CComponent,
    Constant,
    Memory,
    describe,
    loop,
    operations,
    product,
    runtime,
)
from fmilin.errors import UsageError
from fmilin.export.linear_record import require_writable
from fmilin.fmi.write.linear_model_fmu import collect_values
from fmilin.fmi.write.symbolic_fmu import NAME, block_fmu
from fmilin.formats import Writing
from fmilin.linear_model.model import DelayedLinearModel
from fmilin.numerics.delay_form import DelayForm
from fmilin.signals import FloatArray

SAMPLES_PER_MOTION = 20  # in the time in which the fastest motion turns by one radian or decays to a third
SAMPLES_PER_DELAY = 10  # of the shortest delay, at least
MAX_RING_SAMPLES = 1_000_000  # in all ring buffers together


def dumps(linear: DelayedLinearModel, writing: Writing) -> bytes:
    """Return the content of a C file."""
    return build_component(linear, writing).text().encode("ascii")


def dumps_fmu(linear: DelayedLinearModel, writing: Writing) -> bytes:
    """Return the content of an FMU for co-simulation that takes a step every sample."""
    made = build_component(linear, Writing(NAME, deviation=writing.deviation, sample_time=writing.sample_time))
    inputs = [s.with_start(0.0 if writing.deviation else linear.point.inputs[s.name]) for s in linear.inputs]
    return block_fmu(
        made,
        inputs,
        list(linear.outputs),
        f"{writing.name}.fmu",
        fmi_version=writing.fmi,
        start_time=linear.point.time if math.isfinite(linear.point.time) else 0.0,
    )


@dataclass(frozen=True)
class SampledDelays:
    """The system between the delays, sampled: x+ = x + f + (A - 1) x + B u + H w_u + P w + Q w+."""

    A: FloatArray  # shape (n, n)
    f0: FloatArray  # shape (n,)
    B: FloatArray  # shape (n, nu)
    hold: FloatArray  # H, shape (n, m): of delayed signals that are held over a sample
    ramp_start: FloatArray  # P, shape (n, m): of delayed signals that are linear over a sample, by their first value
    ramp_end: FloatArray  # Q, shape (n, m): by their last value


def sample_form(form: DelayForm, f0: FloatArray, sample_time: float) -> SampledDelays:
    """Return the system between the delays over one sample, by one exponential (Van Loan, 1978)."""
    n, nu, m = len(form.A), form.B1.shape[1], form.B2.shape[1]
    forcing = np.hstack((f0[:, None], form.B1, form.B2))
    k = forcing.shape[1]
    M = np.zeros((n + 2 * k, n + 2 * k))
    M[:n, :n], M[:n, n : n + k] = form.A * sample_time, forcing * sample_time
    M[n : n + k, n + k :] = np.eye(k)
    exponential = expm(M)
    forced, ramp = exponential[:n, n : n + k], exponential[:n, n + k :]
    return SampledDelays(
        A=exponential[:n, :n],
        f0=forced[:, 0],
        B=forced[:, 1 : 1 + nu],
        hold=forced[:, 1 + nu :],
        ramp_start=(forced - ramp)[:, 1 + nu : 1 + nu + m],
        ramp_end=ramp[:, 1 + nu :],
    )


def choose_sample_time(form: DelayForm) -> float:
    """Return a whole part of the shortest delay in which no motion is fast."""
    shortest = float(form.delays.min(initial=math.inf))
    fastest = float(np.abs(np.linalg.eigvals(form.A)).max(initial=0.0)) if len(form.A) else 0.0
    gains = np.abs(form.B2) @ np.abs(form.C2)
    fastest = max(fastest, float(np.abs(np.linalg.eigvals(np.abs(form.A) + gains)).max(initial=0.0)))
    per_motion = 1 / (SAMPLES_PER_MOTION * fastest) if fastest else math.inf
    return shortest / max(SAMPLES_PER_DELAY, math.ceil(shortest / per_motion - 1e-9))


def build_component(linear: DelayedLinearModel, writing: Writing) -> CComponent:
    """Return the parts of the file."""
    core = linear.core
    require_writable(core)
    form = linear.form.close_undelayed()
    if not len(form.delays):
        raise UsageError("All delays are zero: save lin.pade(1), which is the model without them.")
    h = choose_sample_time(form) if writing.sample_time is None else writing.sample_time
    samples = form.delays / h
    if not samples.min() >= 1 - 1e-9:
        raise UsageError(
            f"A sample time of {h:g} s is longer than the delay of {form.delays.min():g} s: the delayed signal would "
            "be needed within a sample. Give a sample time that is at most as long."
        )
    sample_counts = np.floor(samples + 1e-9)
    fractions = np.clip(samples - sample_counts, 0.0, None)
    fractions[fractions < 1e-9] = 0.0
    lengths = sample_counts + 2
    if lengths.sum() > MAX_RING_SAMPLES:
        raise UsageError(
            f"The delays take {lengths.sum():,.0f} samples of {h:g} s, and {MAX_RING_SAMPLES:,} is the limit. Give a "
            "longer sample time."
        )
    zero, at = writing.deviation, linear.point
    u0, g0 = (
        np.zeros(len(s)) if zero else collect_values(s, values, what, "C code")
        for s, values, what in ((linear.inputs, at.inputs, "input"), (linear.outputs, at.outputs, "output"))
    )
    sampled = sample_form(form, np.zeros(len(form.A)) if zero else core.f0, h)
    n, nu, ny, m = len(form.A), len(linear.inputs), len(linear.outputs), len(form.delays)
    jumps = bool(form.D21.any())
    names = [name for name, seconds in linear.delays.items() if seconds > 0]
    firsts = np.concatenate(([0.0], np.cumsum(lengths)[:-1]))
    constants = [
        Constant("A", sampled.A, "of the states, by rows, for their next values"),
        Constant("B", sampled.B, "of the inputs, for the next values of the states"),
        Constant("H", sampled.hold, "of delayed signals that are held, for the next values of the states"),
        Constant("P", sampled.ramp_start, "of delayed signals at the start of a sample"),
        Constant("Q", sampled.ramp_end, "of delayed signals at its end"),
        Constant("C1", form.C1, "of the states, for the outputs"),
        Constant("D11", form.D11, "of the inputs, for the outputs"),
        Constant("D12", form.D12, "of delayed signals, for the outputs"),
        Constant("C2", form.C2, "of the states, for the signals before delays"),
        Constant("D21", form.D21, "of the inputs, for the signals before delays"),
        Constant("D22", form.D22, "of delayed signals, for the signals before delays"),
        Constant("f0", sampled.f0, "the change of the states in a sample at the operating point"),
        Constant("u0", u0, "the inputs at the operating point"),
        Constant("g0", g0, "the outputs at the operating point"),
        Constant("first", firsts, "where each ring begins"),
        Constant("length", lengths, "samples in each ring"),
        Constant("whole", sample_counts, "whole samples in each delay"),
        Constant("fraction", fractions, "the rest of each delay, in samples"),
    ]
    states = [f"{describe(s)}, less {v:.6g}" for s, v in zip(core.states, core.y0, strict=True)]
    memory = [
        Memory("x", np.zeros(n), states),
        Memory("smooth", np.zeros(int(lengths.sum())), []),
        Memory("jumps", np.zeros(int(lengths.sum()) if jumps else 0), []),
        Memory("newest", np.zeros(m), [f"place of the newest sample in the ring of {name}" for name in names]),
    ]
    delays = ", ".join(f"{name} by {seconds!r} s" for name, seconds in linear.delays.items())
    return CComponent(
        name=writing.name,
        about=[
            f"linear model of {linear.model.name or 'a model'} with delays: {delays}.",
            f"Sampled every {h!r} s; inputs are held meanwhile. Each delay has a ring of samples: {int(lengths.sum())} "
            "in all. Between samples delayed states are interpolated linearly, with an error of second order in the "
            "sample time, and delayed inputs are exact where the delay is a whole number of samples.",
            *([] if not zero else ["in and out are deviations from the operating point."]),
            *(str(remark) for remark in linear.warnings),
        ],
        inputs=[describe(s, v) for s, v in zip(linear.inputs, u0, strict=True)],
        outputs=[describe(s, v) for s, v in zip(linear.outputs, g0, strict=True)],
        memory=memory,
        constants=constants,
        step=_write_step(form, sampled, jumps=jumps),
        operations=operations(
            sampled.A, sampled.B, sampled.hold, sampled.ramp_start, sampled.ramp_end, form.C1, form.D11, form.D12,
            form.D12, form.C2, form.D21, form.D22, form.D22,
        )
        + nu
        + 30 * m,
        sample_time=h,
        locals=nu + n + ny + 5 * m,
        precision=writing.precision,
        functions=(ACCUMULATE, runtime("ring_advance.c"), runtime("ring_delayed.c")),
    )  # fmt: skip


def _write_step(form: DelayForm, sampled: SampledDelays, *, jumps: bool) -> str:
    n, nu, ny, m = len(form.A), form.B1.shape[1], len(form.C1), len(form.delays)
    reads_states = bool(form.D12.any() or form.D22.any() or sampled.ramp_start.any())
    reads_jumps = jumps and bool(form.D12.any() or form.D22.any() or sampled.hold.any())
    reads_ahead = bool(sampled.ramp_end.any())
    sizes = [("du", nu), ("next", n), ("z", m)]  # compilers warn of unused arrays
    sizes += [("w", m)] * reads_states + [("later", m)] * reads_ahead + [("wj", m)] * reads_jumps + [("zj", m)] * jumps
    text = "".join(f"    @real {name}[{size}];\n" for name, size in sizes if size) + "\n"
    text += loop(nu, "du[i] = in[i] - @u0[i];") or "    (void)in;\n"
    text += loop(m, "w[i] = @delayed(self->smooth, self->newest[i], i);") * reads_states
    text += loop(m, "wj[i] = @delayed(self->jumps, self->newest[i], i);") * reads_jumps
    text += loop(ny, "out[i] = @g0[i];") or "    (void)out;\n"
    text += product("C1", form.C1, "self->x", "out") + product("D11", form.D11, "du", "out")
    text += product("D12", form.D12, "w", "out") + product("D12", form.D12, "wj", "out") * reads_jumps
    text += loop(m, "z[i] = 0;")
    text += product("C2", form.C2, "self->x", "z") + product("D22", form.D22, "w", "z")
    if jumps:
        text += loop(m, "zj[i] = 0;")
        text += product("D21", form.D21, "du", "zj") + product("D22", form.D22, "wj", "zj")
    text += loop(m, "self->newest[i] = @advance(self->newest[i], i);")
    text += loop(m, "self->smooth[(int)@first[i] + (int)self->newest[i]] = z[i];")
    text += loop(m, "self->jumps[(int)@first[i] + (int)self->newest[i]] = zj[i];") if jumps else ""
    text += loop(m, "later[i] = @delayed(self->smooth, self->newest[i], i);") * reads_ahead
    text += loop(n, "next[i] = @f0[i];")
    text += product("A", sampled.A, "self->x", "next") + product("B", sampled.B, "du", "next")
    text += product("P", sampled.ramp_start, "w", "next") + product("Q", sampled.ramp_end, "later", "next")
    text += product("H", sampled.hold, "wj", "next") * reads_jumps
    return text + loop(n, "self->x[i] = next[i];")
