"""Simulate losses with known turns, and count the intervals that contain the true take-off (docs/metrics.md).

Usage: python -m benchmarks.phases [CURVES]
"""

import sys

import numpy as np

from embryo_core.curves.phases import Phase, phases

GRIDS = {  # name -> evaluated steps
    "20 powers of two": [2**power for power in range(20)],
    "24, much as the earlier demo": [*(2**power for power in range(11)), *range(1500, 21000, 1500)],
    "90, as the demo": sorted({*(round(2 ** (power / 6)) for power in range(100)), 100_000}),
}
NOISE = (0.01, 0.03, 0.1)  # nats: standard deviation of a point
CARRIED = {"independent": 0.0, "neighbours correlated": 0.7}  # share of the noise that carries over to the next point


def planted(steps: list[int], noise: float, carried: float, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return simulated losses [S] and the step of their take-off.

    The losses start level, fall, reach a plateau, take off, and end with a slower fall. Each stretch is at least three
    steps of the grid long; turns may be between steps.
    """
    points, x = np.log2(steps), np.arange(len(steps))
    room = len(steps) - 1 - 15
    cuts = np.sort(rng.uniform(0, room, 4)) if room > 0 else np.zeros(4)
    turns = np.interp(3 * np.arange(1, 5) + cuts, x, points)
    knots = [points[0], *turns, points[-1]]
    falls = [0, rng.uniform(0.6, 1.2), rng.uniform(0, 0.15), rng.uniform(0.6, 1.2), rng.uniform(0, 0.2)]
    line = 9 - np.interp(points, knots, np.concatenate([[0], np.cumsum(falls * np.diff(knots))]))
    drawn = rng.normal(0, noise, len(steps))
    for place in range(1, len(steps)):
        drawn[place] = carried * drawn[place - 1] + np.sqrt(1 - carried**2) * drawn[place]
    return line + drawn, float(2 ** turns[2])


def take_off(steps: list[int], losses: np.ndarray) -> Phase | None:
    """Return the phase named "take-off" that is found in the losses, or None."""
    return next((phase for phase in phases(steps, losses) if phase.name == "take-off"), None)


def main(curves: int = 300) -> None:
    """Print how many take-offs are found, how many of their intervals contain the true step, and their width."""
    print(f"{curves} curves each; steps, noise, found, held of those found, median width in doublings")
    for grid, steps in GRIDS.items():
        for name, carried in CARRIED.items():
            for noise in NOISE:
                rng, widths, held = np.random.default_rng(2020), [], 0
                for _ in range(curves):
                    losses, step = planted(steps, noise, carried, rng)
                    if found := take_off(steps, losses):
                        held += found.earliest <= step <= found.latest
                        widths.append(np.log2(found.latest / found.earliest))
                numbers = f"{len(widths)}, {held / len(widths):.1%}, {np.median(widths):.2f}"
                print(f"{grid}, {name}, {noise}: {numbers}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
