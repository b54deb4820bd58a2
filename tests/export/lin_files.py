"""Files as OpenFAST writes them, in its layout of versions 2.0 to 4 (the layout was read from its sources)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["lin_file"]

HEAD = """
Linearized model: Predictions were generated on 01-Nov-2022 at 16:01:32 using OpenFAST, compiled as a 64-bit application
 linked with  NWTC Subroutine Library; ElastoDyn

Description from the FAST input file: a rotor

Simulation information:
   Simulation time:                   {time:.4f} s
   Rotor Speed:                         {speed:.4f} rad/s
   Azimuth:                             {azimuth:.4f} rad
{wind}   Number of continuous states:        {n}
   Number of discrete states:           {discrete}
   Number of constraint states:         0
   Number of inputs:                    {m}
   Number of outputs:                   {p}
   Jacobians included in this file?    No

"""
Row = tuple[str, str, bool, str]
"""Value as it is written, description, whether it turns with the rotor, unit."""


def lin_file(
    matrices: Sequence[np.ndarray],
    tables: Sequence[Sequence[Row]],
    *,
    azimuth: float,
    wind: float | None = 8.0,
    speed: float = 1.0,
    time: float = 120.0,
    orders: bool = True,
    discrete: int = 0,
) -> str:
    """Return a file: A, B, C, D; rows of states, rates, inputs, outputs; without orders as before version 2.3."""
    n, m, p = len(tables[0]), len(tables[2]), len(tables[3])
    line = "" if wind is None else f"   Wind Speed:                          {wind:.4f} m/s\n"
    text = HEAD.format(time=time, speed=speed, azimuth=azimuth, wind=line, n=n, m=m, p=p, discrete=discrete)
    titles = ("continuous states", "continuous state derivatives", "inputs", "outputs")
    for title, rows in zip(titles, tables, strict=True):
        text += _table(title, rows, orders) if rows else ""
    text += "\nLinearized state matrices:\n\n"
    for name, matrix in zip("ABCD", matrices, strict=True):
        if matrix.size:
            text += f"{name}: {matrix.shape[0]} x {matrix.shape[1]}\n"
            text += "".join("    " + "  ".join(f"{entry:.12E}" for entry in row) + "\n" for row in matrix) + "\n"
    return text


def _table(title: str, rows: Sequence[Row], orders: bool) -> str:
    order = " Derivative Order" if orders else ""
    head = f"Order of {title}:\n   Row/Column Operating Point    Rotating Frame?{order} Description\n"
    head += "   ---------- ---------------    ---------------" + " ----------------" * orders + " -----------\n"
    for number, (value, text, rotating, unit) in enumerate(rows, start=1):
        middle = f"{'T' if rotating else 'F'}   {'        2     ' if orders else ''}"
        head += f"{number:11d}    {value:<40}{middle}  {text}, {unit}\n"
    return head + "\n"
