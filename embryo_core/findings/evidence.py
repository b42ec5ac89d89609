"""The stored results of a run for the tests of findings: curves over the steps, each metric read once."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from embryo_core import curves, results, runs
from embryo_core.curves import step_scales
from embryo_core.types import Run

PICTURE_POINTS = 24  # at most this number of points of a curve in a small picture


@dataclass(frozen=True, eq=False)
class Curve:
    """One score over the evaluated steps: steps [S] ascending, values [S], and the cases n [S] behind each."""

    steps: np.ndarray
    values: np.ndarray
    n: np.ndarray

    @property
    def cases(self) -> int:
        """Return the number of cases behind the last value."""
        return int(self.n[-1])

    def thinned(self) -> "Curve":
        """Return the curve at a few log-spaced steps, for a small picture."""
        mask = np.isin(self.steps, step_scales.log_spaced(self.steps, PICTURE_POINTS))
        return Curve(self.steps[mask], self.values[mask], self.n[mask])

    def onset(self) -> curves.Onset | None:
        """Return the step from which the curve stays above half of its last value (see `curves.onset`)."""
        return curves.onset(self.steps, self.values, self.n)

    def rise(self) -> curves.Onset | None:
        """Return the step from which the curve stays above half of its rise; None if it does not rise significantly."""
        first, last = self.values[0], self.values[-1]
        if curves.difference_interval(last, first, self.cases)[0] <= 0:
            return None
        return curves.onset(self.steps, self.values, self.n, floor=float(first))

    def before(self, step: int) -> int:
        """Return the evaluated step before `step`; for the first evaluated step, the step itself."""
        return int(self.steps[max(0, int(np.searchsorted(self.steps, step)) - 1)])

    def around(self, share: float) -> tuple[int, int]:
        """Return the indices of the evaluated steps at or before, and at or after, `share` times the last step."""
        step = share * self.steps[-1]
        return int(np.searchsorted(self.steps, step, side="right")) - 1, int(np.searchsorted(self.steps, step))


class Evidence:
    """A run's stored results, read once for the tests of findings. Raises ResultsError if a table cannot be read."""

    def __init__(self, run: Run):
        self.run = run
        self._read: dict[tuple[str, str, int], Curve] = {}
        self._rows: dict[str, dict[tuple[str, int], pd.DataFrame]] = {}

    def take_curves(self) -> tuple[Curve, ...]:
        """Return the curves read since the last call, thinned: the curves behind one finding's verdict."""
        recorded, self._read = self._read, {}
        return tuple(curve.thinned() for curve in recorded.values())

    def note(self, metric: str, group: str, layer: int, curve: Curve) -> None:
        """Record a curve, read or computed by a test, for `take_curves`."""
        self._read[metric, group, layer] = curve

    @cached_property
    def metrics(self) -> set[str]:
        """Return the names of the metrics with stored scores."""
        return set(results.read_metrics(self.run))

    @cached_property
    def frequencies(self) -> dict[str, int]:
        """Return the count of each word in the training text; empty if words were not counted. Raises BrokenRun."""
        return runs.read_counts(self.run.frequencies)

    def scores(self, metric: str) -> pd.DataFrame:
        """Return the scores of one metric: step, layer, group, value, n."""
        return results.read_scores(self.run, metric)[["step", "layer", "group", "value", "n"]]

    def _curves(self, metric: str) -> dict[tuple[str, int], pd.DataFrame]:
        """Return the rows of a metric by group and layer."""
        if metric not in self._rows:
            scores = self.scores(metric).fillna({"layer": -1, "group": ""})
            self._rows[metric] = dict(list(scores.groupby(["group", "layer"])))
        return self._rows[metric]

    def curve(self, metric: str, group: str = "", layer: int = -1) -> Curve | None:
        """Return the curve of a metric, in a group and layer if it has them; None with fewer than two steps."""
        rows = self._curves(metric).get((group, layer))
        if rows is None or len(rows) < 2:
            return None
        rows = rows.sort_values("step")
        stored_curve = Curve(*(rows[name].to_numpy() for name in ("step", "value", "n")))
        self.note(metric, group, layer, stored_curve)
        return stored_curve

    def layers(self, metric: str, group: str) -> list[int]:
        """Return the layers of a metric in a group, from the lowest."""
        return sorted(layer for name, layer in self._curves(metric) if name == group and layer >= 0)

    def groups(self, metric: str) -> list[str]:
        """Return the groups of a metric, sorted by name."""
        return sorted({name for name, _ in self._curves(metric) if name})
