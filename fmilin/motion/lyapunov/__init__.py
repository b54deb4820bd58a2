"""Lyapunov characteristic exponents of constrained models."""

from __future__ import annotations

from fmilin.motion.lyapunov.benettin import Benettin, LyapunovExponents, lyapunov_exponents

__all__ = ["Benettin", "LyapunovExponents", "lyapunov_exponents"]
