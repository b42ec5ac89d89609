"""Section 4: when layers learn syntax and semantics, and where their heads attend."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from embryo_core import curves
from embryo_core.findings.comparisons import (
    CHECKPOINT_UNIT,
    SCORE_UNIT,
    compare_onsets,
    compare_rises,
    compare_with_peak,
)
from embryo_core.findings.evidence import Curve, Evidence
from embryo_core.findings.finding import Comparison, Finding, TestOutcome

F1_METRIC, SAME_METRIC = "edge_probing_f1", "head_behaviour_same"
SYNTAX, SEMANTICS = ("pos", "constituent"), ("srl", "coref")
PROBE_NAMES = {"pos": "parts of speech", "constituent": "constituents", "srl": "semantic roles", "coref": "coreference"}
MAX_STEP_RATIO = 2.0  # two tasks rise together if the steps of half their rises differ by less than this factor
EARLY_SHARE, SATURATED_SHARE = 0.25, 0.9  # share of the run by which this share of the rise should be complete
MIN_PATTERN_GAIN = 0.05  # smallest gain in attention weight of a head that shows the pattern


def syntax_and_semantics_together(evidence: Evidence) -> TestOutcome:
    """Compare the rise of every syntactic task with that of every semantic task, each in the layer best at the end."""
    best_curves = _best_curves(evidence, (*SYNTAX, *SEMANTICS))
    comparisons = [
        compare_rises(
            f"{PROBE_NAMES[first]} with {PROBE_NAMES[second]}", best_curves[first], best_curves[second], MAX_STEP_RATIO
        )
        for first, second in product(SYNTAX, SEMANTICS)
        if first in best_curves and second in best_curves
    ]
    return TestOutcome([comparison for comparison in comparisons if comparison], _describe_unrisen(best_curves))


def syntax_saturates(evidence: Evidence) -> TestOutcome:
    """Compare the rise of each syntactic task within a quarter of the run with 90 % of its whole rise."""
    best_curves = _best_curves(evidence, SYNTAX)
    rising_curves = {task: curve for task, curve in best_curves.items() if curve.rise() is not None}
    early_curves = {
        task: curve for task, curve in rising_curves.items() if curve.steps[0] <= EARLY_SHARE * curve.steps[-1]
    }
    late_names = [PROBE_NAMES[task] for task in rising_curves if task not in early_curves]
    late_notes = [f"Not probed within a quarter of the run: {', '.join(late_names)}."] if late_names else []
    statistic = " ".join(filter(None, [_describe_unrisen(best_curves), *late_notes]))
    return TestOutcome(
        [_compare_saturation(PROBE_NAMES[task], curve) for task, curve in early_curves.items()], statistic
    )


def _best_curves(evidence: Evidence, tasks: Iterable[str]) -> dict[str, Curve]:
    """Return the curve of each task with scores, in the layer that is best at the end."""
    return {task: curve for task in tasks if (curve := best_layer(evidence, task))}


def _describe_unrisen(best_curves: Mapping[str, Curve]) -> str:
    """Return a sentence that names the tasks without a significant rise; "" if all have risen."""
    names = [PROBE_NAMES[task] for task, curve in best_curves.items() if curve.rise() is None]
    return f"No significant rise: {', '.join(names)}." if names else ""


def _compare_saturation(name: str, curve: Curve) -> Comparison:
    """Compare the value at a quarter of the run with the value at 90 % of the rise.

    The curve must begin within that quarter. The compared value is the last one measured in the quarter; since nothing
    was measured until the next step, the interval extends to that step's value.
    """
    last_inside, first_outside = curve.around(EARLY_SHARE)
    shares = np.array([curve.values[last_inside], curve.values[0], curve.values[-1]])
    weights = np.array([1, -(1 - SATURATED_SHARE), -SATURATED_SHARE])
    low, high = curves.interval(shares, curve.cases)
    next_low, next_high = curves.interval(curve.values[first_outside], curve.cases)
    low[0], high[0] = min(low[0], next_low), max(high[0], next_high)
    below = np.where(weights > 0, weights * (shares - low), weights * (shares - high))
    above = np.where(weights > 0, weights * (high - shares), weights * (low - shares))
    value = float(weights @ shares)
    low_end, high_end = value - float(np.hypot.reduce(below)), value + float(np.hypot.reduce(above))
    return Comparison(name, value, low_end, high_end, SCORE_UNIT, curve.cases)


def upper_layers(evidence: Evidence) -> TestOutcome:
    """Compare for each task whether the last layer rises after the first, and ends below its peak."""
    return TestOutcome(
        [comparison for task, name in PROBE_NAMES.items() for comparison in _compare_last_layer(evidence, task, name)]
    )


def _compare_last_layer(evidence: Evidence, task: str, name: str) -> Iterator[Comparison]:
    """Yield the comparisons of `upper_layers` for one task; none without scores of two layers."""
    layers = [layer for layer in evidence.layers(F1_METRIC, task) if layer > 0]
    if len(layers) < 2:
        return
    first, last = (evidence.curve(F1_METRIC, task, layer) for layer in (layers[0], layers[-1]))
    if first is None or last is None:
        return
    label = f"{name}, layer {layers[0]} before layer {layers[-1]}"
    if comparison := compare_onsets(label, first, last, (first.rise(), last.rise())):
        yield comparison
    yield compare_with_peak(f"{name}, layer {layers[-1]} falls back", last)


def semantic_roles_decay(evidence: Evidence) -> TestOutcome:
    """Compare in every layer how far the F1 of semantic roles has fallen from its peak."""
    layers = [layer for layer in evidence.layers(F1_METRIC, "srl") if layer > 0]
    by_layer = [(layer, evidence.curve(F1_METRIC, "srl", layer)) for layer in layers]
    return TestOutcome([compare_with_peak(f"layer {layer}", curve) for layer, curve in by_layer if curve])


def diagonals_from_above(evidence: Evidence) -> TestOutcome:
    """Compare when a head first attends to its own token, in each layer of the upper and each of the lower half."""
    table = evidence.scores(SAME_METRIC).pivot_table(index="step", columns="layer", values="value", aggfunc="max")
    steps, strongest = table.index.to_numpy(), {int(layer): table[layer].to_numpy() for layer in table}
    for layer, values in strongest.items():
        evidence.note(SAME_METRIC, "", layer, Curve(steps, values, np.ones_like(steps)))
    onsets = {
        layer: curves.held_from(steps, values, values[0] + MIN_PATTERN_GAIN) for layer, values in strongest.items()
    }
    layers = sorted(onsets)
    half = len(layers) // 2
    n = int(max(evidence.scores(SAME_METRIC)["n"], default=0))
    comparisons = [
        _compare_first_steps(f"layer {upper} before layer {lower}", onsets[upper], onsets[lower], steps, n)
        for upper in layers[len(layers) - half :]
        for lower in layers[:half]
        if (onsets[upper], onsets[lower]) != (None, None)
    ]
    layer_names = [str(layer) for layer in layers if onsets[layer] is not None]
    statistic = (
        f"Layers with a same-token diagonal at the end: {', '.join(layer_names) or 'none'}. "
        "The spread of a mean weight is not stored, so no comparison has an interval."
    )
    return TestOutcome(comparisons, statistic)


def _compare_first_steps(label: str, upper: int | None, lower: int | None, steps: np.ndarray, n: int) -> Comparison:
    indices = [len(steps) if step is None else int(np.searchsorted(steps, step)) for step in (upper, lower)]
    lead = float(indices[1] - indices[0])
    return Comparison(label, lead, lead, lead, CHECKPOINT_UNIT, n, not lead)


def best_layer(evidence: Evidence, task: str) -> Curve | None:
    """Return the curve of a task's F1 in the layer where it is highest at the last step."""
    layers = [evidence.curve(F1_METRIC, task, layer) for layer in evidence.layers(F1_METRIC, task)]
    return max((curve for curve in layers if curve), key=lambda curve: curve.values[-1], default=None)


PROBING_FIELDS: dict[str, Any] = {
    "page": "Probing",
    "metrics": (F1_METRIC,),
    "command": "evaluate --probing FOLDER",
    "needs": frozenset({"states"}),
}
FINDINGS = (
    Finding(
        name="syntax_and_semantics",
        claim="Syntax and semantics develop at the same time.",
        section="Section 4, Figure 2b",
        predicts="The steps at which half of their rises is complete differ by less than a factor of two.",
        view={"probing": "tasks"},
        test=syntax_and_semantics_together,
        **PROBING_FIELDS,
    ),
    Finding(
        name="syntax_saturates",
        claim="Syntax is learned early, and gains little after.",
        section="Section 4, Figure 2b",
        predicts="A quarter of the run makes at least 90 % of the rise.",
        view={"probing": "tasks"},
        test=syntax_saturates,
        **PROBING_FIELDS,
    ),
    Finding(
        name="upper_layers",
        claim="Upper layers rise later than lower ones, and fall back.",
        section="Section 4, Figures 3 and 10",
        predicts="The last layer has its onset after the first layer, and ends below its peak.",
        view={"probing": "layers"},
        test=upper_layers,
        **PROBING_FIELDS,
    ),
    Finding(
        name="semantic_roles_decay",
        claim="Semantic roles reach a peak and decay.",
        section="Section 4, Figure 2b",
        predicts="In each layer the last value is below the best one before it.",
        view={"probing": "layers", "probe_task": "srl"},
        test=semantic_roles_decay,
        **PROBING_FIELDS,
    ),
    Finding(
        name="diagonals",
        claim="Heads that attend to their own token appear in the upper layers first.",
        section="Section 4, Figure 4",
        predicts="In each upper layer, a head gains 0.05 of attention to its own token, for good, before one in each "
        "lower layer.",
        page="Attention",
        view={"section": "heads", "pattern": "same"},
        metrics=(SAME_METRIC,),
        command="evaluate --treebank PATH",
        test=diagonals_from_above,
        needs=frozenset({"attentions"}),
    ),
)
