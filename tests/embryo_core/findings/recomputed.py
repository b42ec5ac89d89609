"""Recompute every finding from the parquet files alone and in another way, for tests.

Rows are read with pyarrow, intervals are the roots of Wilson's equation, and onsets are searched step by step; nothing
of embryo_core is used. Each function of `RECOMPUTED` gives the comparisons of one finding as (value, low, high, n,
tied).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import combinations, product
from math import ceil, log2, sqrt
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.stats import norm, spearmanr
from sklearn.metrics import f1_score, matthews_corrcoef

Point = tuple[int, float, int]  # step, value, n
Compared = tuple[float, float, float, int, bool]  # value, low, high, n, whether two onsets are tied
NEVER = (None, None, None)  # no onset
FUNCTION = ("determiner", "preposition", "conjunction", "pronoun")
CONTENT = ("verb", "adverb", "adjective", "noun", "proper noun")
BANDS = ("rank 50-99", "rank 300-349", "rank 1550-1599")
RECONSTRUCTION, PREDICTION = "token_reconstruction", "mask_prediction"


class Tables:
    """Hold the tables of a run as lists of rows; missing tables are empty."""

    def __init__(self, results: Path, run: Path):
        self._results, self._run = results, run
        self.curves: dict[tuple[str, str, int], list[Point]] = {}
        for row in sorted(self.rows("scores"), key=lambda row: row["step"]):
            layer = -1 if row["layer"] is None else row["layer"]
            points = self.curves.setdefault((row["metric"], row["group"] or "", layer), [])
            points.append((row["step"], row["value"], row["n"]))

    def rows(self, table: str) -> list[dict]:
        """Return all rows of a table."""
        path = self._results / f"{table}.parquet"
        return pq.read_table(path).to_pylist() if path.exists() else []

    def curve(self, metric: str, group: str, layer: int = -1) -> list[Point]:
        """Return the points of a score; none if there is only one."""
        points = self.curves.get((metric, group, layer), [])
        return points if len(points) > 1 else []

    def layers(self, metric: str, task: str) -> list[int]:
        """Return the layers above the embeddings in which a task was probed."""
        return sorted(layer for name, group, layer in self.curves if (name, group) == (metric, task) and layer > 0)

    def frequencies(self) -> Counter:
        """Return how often each word occurs in the training corpus."""
        lines = (self._run / "frequencies.tsv").read_text(encoding="utf-8").splitlines()
        return Counter({word: int(times) for word, times in (line.rsplit("\t", 1) for line in lines)})


# === Shares and onsets ===


@cache
def wilson(share: float, n: int, z: float = float(norm.ppf(0.975))) -> tuple[float, float]:
    """Return the two shares x at which (share - x)^2 = z^2 x (1 - x) / n."""
    low, high = sorted(np.roots([1 + z**2 / n, -(2 * share + z**2 / n), share**2]).real)
    return min(max(low, 0.0), share), max(min(high, 1.0), share)


def newcombe(first: float, second: float, n: int, z: float = float(norm.ppf(0.975))) -> tuple[float, float]:
    """Return the interval of the difference of two shares of n cases each."""
    (a, b), (c, d) = wilson(first, n, z), wilson(second, n, z)
    difference = first - second
    return (
        difference - sqrt((first - a) ** 2 + (d - second) ** 2),
        difference + sqrt((b - first) ** 2 + (second - c) ** 2),
    )


def onset(points: list[Point], floor: float = 0.0) -> tuple[int | None, int | None, int | None]:
    """Return the step from which a curve stays above half of its last value, the earliest and the latest."""
    if points[-1][1] <= floor:
        return NEVER
    level = floor + 0.5 * (points[-1][1] - floor)
    ends = [wilson(value, n) for _, value, n in points]
    may = [step for i, (step, _, _) in enumerate(points) if all(high >= level for _, high in ends[i:])]
    sure = [step for i, (step, _, _) in enumerate(points) if all(low >= level for low, _ in ends[i:])]
    risen = [step for step, value, _ in points if step >= may[0] and value >= level]
    return risen[0], may[0], sure[0] if sure else None


def rise(points: list[Point]) -> tuple[int | None, int | None, int | None]:
    """Return the onset above the first value; None if the last is not significantly above it."""
    first, (_, last, n) = points[0][1], points[-1]
    return onset(points, first) if newcombe(last, first, n)[0] > 0 else NEVER


# === Kinds of comparison ===


def earlier(first: list[Point], second: list[Point], of: Callable = onset) -> Iterator[Compared]:
    """Yield by how many evaluated steps one curve comes before another."""
    one, two = of(first), of(second)
    if one == two == NEVER:
        return
    grid = sorted({step for step, *_ in (*first, *second)})
    (a, a_from, a_to), (b, b_from, b_to) = (
        [len(grid) if step is None else grid.index(step) for step in onset_step] for onset_step in (one, two)
    )
    if one != NEVER:
        a_from = min(i for i in range(a_from + 1) if not set(grid[i:a_from]) & {step for step, *_ in first})
    if two != NEVER:
        b_from = min(i for i in range(b_from + 1) if not set(grid[i:b_from]) & {step for step, *_ in second})
    yield b - a, b_from - a_to, b_to - a_from, min(first[-1][2], second[-1][2]), a == b


def fallen(points: list[Point]) -> Compared:
    """Return how far the last value is below the best before it, at a confidence shared by all differences."""
    *before, (_, last, n) = points
    z = float(norm.ppf(1 - 0.025 / len(before)))
    ends = [newcombe(value, last, n, z) for _, value, _ in before]
    return max(v for _, v, _ in before) - last, max(low for low, _ in ends), max(high for _, high in ends), n, False


def pairs(tables: Tables, metric: str, names: Iterable[tuple[str, str]]) -> Iterator[Compared]:
    """Yield the comparisons of pairs of groups of one task."""
    for first, second in names:
        one, two = tables.curve(metric, first), tables.curve(metric, second)
        if one and two:
            yield from earlier(one, two)


# === Findings ===


def reconstruction_first(tables: Tables) -> Iterator[Compared]:
    """Compare each category in the two tasks."""
    for name in (*FUNCTION, *CONTENT):
        one, two = tables.curve(RECONSTRUCTION, name), tables.curve(PREDICTION, name)
        if one and two:
            yield from earlier(one, two)


def function_words(tables: Tables, metric: str) -> Iterator[Compared]:
    """Compare each function category with each content category."""
    return pairs(tables, metric, product(FUNCTION, CONTENT))


def content_words(tables: Tables, metric: str) -> Iterator[Compared]:
    """Compare content categories in the paper's order."""
    return pairs(tables, metric, combinations(CONTENT, 2))


def verb_forms(tables: Tables, metric: str) -> Iterator[Compared]:
    """Compare verb forms from the most to the least frequent, by the mean frequency of the treebank's words."""
    counts, words = tables.frequencies(), [row for row in tables.rows("words") if row["metric"] == metric]
    last, means = max(row["step"] for row in words), {}
    for form in ("VB", "VBD", "VBG", "VBN", "VBZ"):
        of_form = [row for row in words if (row["tag"], row["step"]) == (form, last)]
        times = [counts[row["word"]] if row["word"] in counts else counts[row["word"].lower()] for row in of_form]
        if of_form:
            means[form] = np.average(times, weights=[row["n"] for row in of_form])
    return pairs(tables, metric, combinations(sorted(means, key=lambda form: -means[form]), 2))


def frequent_words(tables: Tables) -> Iterator[Compared]:
    """Compare frequency bands in both tasks."""
    for metric in (RECONSTRUCTION, PREDICTION):
        yield from pairs(tables, metric, combinations(BANDS, 2))


def _best(tables: Tables, task: str) -> list[Point]:
    """Return the curve of the layer, including the embeddings, that is best at the end; the lowest of tied layers."""
    layers = [0, *tables.layers("edge_probing_f1", task)]
    curves = [points for layer in layers if (points := tables.curve("edge_probing_f1", task, layer))]
    return max(curves, key=lambda points: points[-1][1], default=[])


def syntax_and_semantics(tables: Tables) -> Iterator[Compared]:
    """Yield how many doublings are left within a factor of two, for every pair of steps that may be the onsets."""
    for tasks in product(("pos", "constituent"), ("srl", "coref")):
        curves = [_best(tables, task) for task in tasks]
        if not all(curves) or NEVER in (rises := [rise(points) for points in curves]):
            continue
        end = 2 * max(points[-1][0] for points in curves)
        since = [max([step for step, *_ in points if step < e], default=e) for points, (_, e, _) in zip(curves, rises)]
        (a, a_from, a_to), (b, b_from, b_to) = (
            (s, before, end if t is None else t) for (s, _, t), before in zip(rises, since)
        )
        apart = [log2((two + 1) / (one + 1)) for one, two in ((a_from, b_to), (a_to, b_from))]
        least = 0.0 if min(apart) <= 0 <= max(apart) else min(map(abs, apart))
        value = 1 - abs(log2((b + 1) / (a + 1)))
        low = 1 - max(map(abs, apart))
        yield value, low, 1 - least, min(points[-1][2] for points in curves), a == b and low <= 0


def syntax_saturates(tables: Tables) -> Iterator[Compared]:
    """Compare the value at a quarter of the run with nine tenths of the rise."""
    for task in ("pos", "constituent"):
        points = _best(tables, task)
        if points and rise(points) != NEVER and points[0][0] <= points[-1][0] / 4:
            n = points[-1][2]
            early = [value for step, value, _ in points if step <= points[-1][0] / 4][-1]
            late = next(value for step, value, _ in points if step >= points[-1][0] / 4)
            below = above = 0.0
            for share, weight in ((early, 1.0), (points[0][1], -0.1), (points[-1][1], -0.9)):
                ends = sorted(weight * end for end in wilson(share, n))
                if weight == 1.0:
                    ends = sorted((*ends, *wilson(late, n)))[::3]
                below, above = below + (weight * share - ends[0]) ** 2, above + (ends[1] - weight * share) ** 2
            value = early - 0.1 * points[0][1] - 0.9 * points[-1][1]
            yield value, value - sqrt(below), value + sqrt(above), n, False


def upper_layers(tables: Tables) -> Iterator[Compared]:
    """Compare the first layer with the last, and the last with its peak."""
    for task in ("pos", "constituent", "srl", "coref"):
        layers = tables.layers("edge_probing_f1", task)
        if len(layers) > 1:
            first, last = (tables.curve("edge_probing_f1", task, layer) for layer in (layers[0], layers[-1]))
            if first and last:
                yield from earlier(first, last, rise)
                yield fallen(last)


def semantic_roles_decay(tables: Tables) -> Iterator[Compared]:
    """Compare the last value with the best in each layer above the embeddings."""
    for layer in tables.layers("edge_probing_f1", "srl"):
        if points := tables.curve("edge_probing_f1", "srl", layer):
            yield fallen(points)


def diagonals(tables: Tables) -> Iterator[Compared]:
    """Compare when the strongest heads of upper and lower layers have gained 0.05 for good."""
    rows = [row for row in tables.rows("scores") if row["metric"] == "head_behaviour_same"]
    steps = sorted({row["step"] for row in rows})
    since = {}
    for layer in sorted({row["layer"] for row in rows}):
        strongest = [max(r["value"] for r in rows if (r["layer"], r["step"]) == (layer, step)) for step in steps]
        above = [value >= strongest[0] + 0.05 for value in strongest]
        since[layer] = next((place for place in range(len(steps)) if all(above[place:])), len(steps))
    half = len(since) // 2
    for upper, lower in product(list(since)[len(since) - half :], list(since)[:half]):
        if (since[upper], since[lower]) != (len(steps), len(steps)):
            n = max(row["n"] for row in rows)
            yield *(since[lower] - since[upper],) * 3, n, since[lower] == since[upper]


def accuracy(gold: np.ndarray, answers: np.ndarray) -> float:
    """Return the share of right answers."""
    return (gold == answers).mean()


def spearman(gold: np.ndarray, answers: np.ndarray) -> float:
    """Return the rank correlation; 0 if all answers are equal."""
    return spearmanr(gold, answers).statistic if np.ptp(answers) > 0 else 0.0


TASKS = {"cola": matthews_corrcoef, "stsb": spearman} | dict.fromkeys(("mrpc", "qqp"), f1_score)
TASKS |= dict.fromkeys(("sst2", "mnli", "qnli", "rte"), accuracy)


def gains_flatten(tables: Tables) -> Iterator[Compared]:
    """Yield how long before a quarter of the run each task has 95 % of its last score, with 400 samples of examples.

    Tasks are left out if their last score is not above that of one constant answer, or is above 0 in fewer than 97.5 %
    of the samples.
    """
    names = {"cola": "matthews", "stsb": "spearman", "mrpc": "f1", "qqp": "f1"}
    rows = [row for row in tables.rows("task_scores") if row["predictor"] != "model"]
    constant = {row["task"]: row["value"] for row in rows if row["metric"] == names.get(row["task"], "accuracy")}
    answers: dict[str, dict[tuple[int, int], dict[int, tuple[float, float]]]] = {}
    for row in tables.rows("answers"):
        of_task = answers.setdefault(row["task"], {})
        of_task.setdefault((row["step"], row["seed"]), {})[row["example"]] = row["gold"], row["answer"]
    for task in sorted(answers):
        steps, n = sorted({step for step, _ in answers[task]}), len(next(iter(answers[task].values())))
        pairs = {key: np.array([of_key[i] for i in sorted(of_key)]) for key, of_key in answers[task].items()}
        draws = np.random.default_rng(7).integers(0, n, (400, n))
        reached = [_reached(TASKS[task], pairs, steps, draw) for draw in (np.arange(n), *draws)]
        drawn = sorted(step for step in reached[1:] if step is not None)
        last = np.mean([TASKS[task](*pairs[key].T) for key in pairs if key[0] == steps[-1]])
        if len(steps) > 1 and reached[0] is not None and len(drawn) >= 390 and last > constant.get(task, -1):
            earliest = drawn[ceil(0.025 * len(drawn)) - 1]
            since = max([step for step in steps if step < earliest], default=0)
            ends = reached[0], drawn[ceil(0.975 * len(drawn)) - 1], since
            yield *(0.25 - step / steps[-1] for step in ends), n, False


def _reached(
    score: Callable[[np.ndarray, np.ndarray], float],
    pairs: dict[tuple[int, int], np.ndarray],
    steps: list[int],
    chosen: np.ndarray,
) -> int | None:
    """Return the first step with 95 % of the last score on the `chosen` examples, averaged over seeds; None if 0."""
    means = [np.mean([score(*pairs[key][chosen].T) for key in pairs if key[0] == step]) for step in steps]
    if means[-1] <= 0:
        return None
    return next(step for step, mean in zip(steps, means, strict=True) if mean >= 0.95 * means[-1])


def knowledge_fluctuates(tables: Tables) -> Iterator[Compared]:
    """Compare all facts, then each relation whose precision is significantly above 2 % at some step."""
    relations = sorted(group for metric, group, _ in tables.curves if metric == "world_knowledge" and group != "all")
    for group in ("all", *relations):
        points = tables.curve("world_knowledge", group)
        if points and (group == "all" or any(wilson(value, n)[0] >= 0.02 for _, value, n in points)):
            yield fallen(points)


def four_histories(tables: Tables) -> Iterator[Compared]:
    """Compare the share of each kind of history, written as a string of answers, with one in a hundred."""
    histories: dict[tuple[str, str], str] = {}
    for row in sorted(tables.rows("cloze"), key=lambda row: row["step"]):
        fact = row["relation"], row["fact"]
        histories[fact] = histories.get(fact, "") + "01"[row["rank"] == 1]
    for pattern in ("0*1+", "0*1+0+", "0*1+0+1[01]*", "0*"):
        share = sum(bool(re.fullmatch(pattern, history)) for history in histories.values()) / len(histories)
        low, high = wilson(share, len(histories))
        yield share - 0.01, low - 0.01, high - 0.01, len(histories), False


RECOMPUTED: dict[str, Callable[[Tables], Iterator[Compared]]] = {
    "reconstruction_before_prediction": reconstruction_first,
    "frequent_words": frequent_words,
    "syntax_and_semantics": syntax_and_semantics,
    "syntax_saturates": syntax_saturates,
    "upper_layers": upper_layers,
    "semantic_roles_decay": semantic_roles_decay,
    "diagonals": diagonals,
    "gains_flatten": gains_flatten,
    "knowledge_fluctuates": knowledge_fluctuates,
    "four_fates": four_histories,
}
for _name, _metric in (("reconstruction", RECONSTRUCTION), ("prediction", PREDICTION)):
    RECOMPUTED |= {
        f"function_words_{_name}": partial(function_words, metric=_metric),
        f"content_words_{_name}": partial(content_words, metric=_metric),
        f"verb_forms_{_name}": partial(verb_forms, metric=_metric),
    }


def verdict(comparisons: list[Compared]) -> str:
    """Apply the rule of docs/metrics.md."""
    hold, opposed = sum(low > 0 for _, low, *_ in comparisons), sum(high < 0 for _, _, high, *_ in comparisons)
    if 2 * sum(tied for *_, tied in comparisons) > len(comparisons) or not comparisons:
        return "undecided"
    if 4 * opposed >= len(comparisons) and opposed > hold:
        return "contradicted"
    if 2 * hold > len(comparisons) and opposed == 0:
        return "reproduced"
    return "partly" if hold else "not"
