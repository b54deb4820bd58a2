"""Rotors on a yielding hub: the ground resonance of Coleman and Feingold, as Lagrange's equations."""

from __future__ import annotations

from functools import cache

import sympy as sm

from fmilin.models import LagrangeModel

MASS, BLADE, RADIUS, HINGE, GROUND, LAG, INERTIA, SPEED = 50.0, 5.0, 5.0, 0.3, 4e3, 2e3, 1e3, 6.0


@cache
def rotor(blades: int, *, sideways: bool = False) -> LagrangeModel:
    """A hub on springs along x (and y, unless it moves sideways only), blades with point masses that lag on springs."""
    x, y, psi = sm.symbols("x y psi")
    lag = sm.symbols(f"b1:{blades + 1}")
    q = [x, psi, *lag] if sideways else [x, y, psi, *lag]
    v = sm.symbols([f"v_{s}" for s in q])
    rates = dict(zip(q, v, strict=True))
    ground = [x] if sideways else [x, y]
    T = INERTIA * rates[psi] ** 2 / 2 + sum(MASS * rates[s] ** 2 for s in ground) / 2
    V = sum(GROUND * s**2 for s in ground) / 2
    height = 0 if sideways else y
    for k, zeta in enumerate(lag):
        angle = psi + 2 * sm.pi * k / blades
        place = [x + HINGE * sm.cos(angle) + RADIUS * sm.cos(angle + zeta),
                 height + HINGE * sm.sin(angle) + RADIUS * sm.sin(angle + zeta)]  # fmt: skip
        T += BLADE * sum(sum(sm.diff(p, s) * rate for s, rate in rates.items()) ** 2 for p in place) / 2
        V += LAG * zeta**2 / 2
    L = T - V
    M = sm.Matrix([[sm.diff(T, a, b) for b in v] for a in v])
    momenta = {s: sm.diff(L, rate) for s, rate in rates.items()}
    F = [sm.diff(L, s) - sum(sm.diff(momenta[s], other) * w for other, w in rates.items()) for s in q]
    pairs = {str(s): str(rate) for s, rate in rates.items()}
    return LagrangeModel(f"rotor of {blades} blades", pairs, M.tolist(), F, start={"v_psi": SPEED})


def helicopter(dampers: tuple[float, ...]) -> LagrangeModel:
    """Four blades with lag dampers on a hub that is heavier along x: after Hammond's example, in SI units."""
    blade, moment, inertia, hinge = 94.9, 289.1, 1084.7, 0.3048
    stiffness, hub_dampers, hub = 1240481.8, (51078.7, 25539.3), (8026.6, 3283.6)
    x, y, psi, *lag = q = sm.symbols("x y psi b1:5")
    rates = dict(zip(q, sm.symbols([f"v_{s}" for s in q]), strict=True))
    T = 1e9 * rates[psi] ** 2 / 2 + sum(m * rates[s] ** 2 for m, s in zip(hub, (x, y), strict=True)) / 2
    V = stiffness * (x**2 + y**2) / 2
    R = sum(c * rates[s] ** 2 for c, s in zip((*hub_dampers, *dampers), (x, y, *lag), strict=True)) / 2
    for k, zeta in enumerate(lag):
        angle, turning = psi + sm.pi * k / 2, rates[psi] + rates[zeta]
        along, across = rates[x] - hinge * sm.sin(angle) * rates[psi], rates[y] + hinge * sm.cos(angle) * rates[psi]
        normal = sm.cos(angle + zeta) * across - sm.sin(angle + zeta) * along
        T += blade * (along**2 + across**2) / 2 + moment * turning * normal + inertia * turning**2 / 2
    M = [[sm.diff(T, a, b) for b in rates.values()] for a in rates.values()]
    F = [sm.diff(T - V, s) - sum(sm.diff(T, w, r) * rates[r] for r in q) - sm.diff(R, w) for s, w in rates.items()]
    return LagrangeModel("helicopter", {str(s): str(w) for s, w in rates.items()}, M, F, start={"v_psi": 30.0})
