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
NOISE_LEVELS = (0.01, 0.03, 0.1)  # nats: standard deviation of a point
# share of the noise that carries over to the next point
CARRY_OVERS = {"independent": 0.0, "neighbours correlated": 0.7}


def simulate_losses(
    steps: list[int], noise: float, carry_over: float, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Return simulated losses [S] and the step of their take-off.

    The losses start level, fall, reach a plateau, take off, and end with a slower fall. Each stretch is at least three
    steps of the grid long; turns may be between steps.
    """
    points, x = np.log2(steps), np.arange(len(steps))
    slack = len(steps) - 1 - 15
    cuts = np.sort(rng.uniform(0, slack, 4)) if slack > 0 else np.zeros(4)
    turns = np.interp(3 * np.arange(1, 5) + cuts, x, points)
    knots = [points[0], *turns, points[-1]]
    falls = [0, rng.uniform(0.6, 1.2), rng.uniform(0, 0.15), rng.uniform(0.6, 1.2), rng.uniform(0, 0.2)]
    line = 9 - np.interp(points, knots, np.concatenate([[0], np.cumsum(falls * np.diff(knots))]))
    residuals = rng.normal(0, noise, len(steps))
    for i in range(1, len(steps)):
        residuals[i] = carry_over * residuals[i - 1] + np.sqrt(1 - carry_over**2) * residuals[i]
    return line + residuals, float(2 ** turns[2])


def take_off(steps: list[int], losses: np.ndarray) -> Phase | None:
    """Return the phase named "take-off" that is found in the losses, or None."""
    return next((phase for phase in phases(steps, losses) if phase.name == "take-off"), None)


def main(curves: int = 300) -> None:
    """Print how many take-offs are found, how many of their intervals contain the true step, and their width."""
    print(f"{curves} curves each; steps, noise, found, held of those found, median width in doublings")
    for grid_name, steps in GRIDS.items():
        for name, carry_over in CARRY_OVERS.items():
            for noise in NOISE_LEVELS:
                rng, widths, covered_count = np.random.default_rng(2020), [], 0
                for _ in range(curves):
                    losses, step = simulate_losses(steps, noise, carry_over, rng)
                    if take_off_phase := take_off(steps, losses):
                        covered_count += take_off_phase.earliest <= step <= take_off_phase.latest
                        widths.append(np.log2(take_off_phase.latest / take_off_phase.earliest))
                numbers = f"{len(widths)}, {covered_count / len(widths):.1%}, {np.median(widths):.2f}"
                print(f"{grid_name}, {name}, {noise}: {numbers}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
