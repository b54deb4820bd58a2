"""Rightmost eigenvalues of 60 random systems with delays against 40 digits.

``python -m benchmarks.delay_truth [COUNT]`` prints the largest differences. Systems of order 1 to 5 have one to three
delays of 0.1 to 2 s, some of them in series. Each of the six rightmost eigenvalues is compared with the root of the
characteristic equation that mpmath finds with 40 digits by the secant method, and the argument principle counts the
eigenvalues right of the sixth one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from fmilin.numerics.delay_counts import count_eigenvalues_right_of
from fmilin.numerics.delay_eigenvalues import find_rightmost_eigenvalues
from tests.numerics.test_delays import make_random, solve_exactly

COUNT = 60
EIGENVALUE_COUNT = 6
SEED = 2026


def main(arguments: Sequence[str] = ()) -> int:
    """Print the differences of as many systems as the first argument says."""
    count = int(arguments[0]) if arguments else COUNT
    rng = np.random.default_rng(SEED)
    largest, beyond, miscounted, compared = 0.0, 0, 0, 0
    for _ in range(count):
        form = make_random(rng)
        result = find_rightmost_eigenvalues(form, EIGENVALUE_COUNT)
        for value, error in zip(result.values.tolist(), result.errors.tolist(), strict=True):
            difference = abs(value - solve_exactly(form, value))
            largest = max(largest, difference / max(1.0, abs(value)))
            beyond += difference > max(error, 1e-15)
            compared += 1
        leftmost = float(result.values.real.min())
        line = leftmost - 1e-7 * max(1.0, abs(leftmost))
        miscounted += count_eigenvalues_right_of(form, line) != len(result.values)
    print(f"{count} systems, {compared} eigenvalues")
    print(f"largest relative difference   {largest:.1e}")
    print(f"beyond the stated error       {beyond}")
    print(f"counted in another way        {miscounted}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
