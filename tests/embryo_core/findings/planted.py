"""Runs with planted results of every kind that findings read, written through the store.

They show all findings, contradict them all (labels permuted), or are noise.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np

from embryo_core import results
from embryo_core.groups import BANDS
from embryo_core.measurements import ClozeAnswer, Findings, Score, TaskAnswer, TaskScore, TuningPoint, WordCount
from embryo_core.types import Run
from tests.conftest import checkpoint_at
from tests.embryo_core.findings.conftest import STEPS, N
from tests.embryo_core.results.conftest import make_run

CATEGORIES = (
    "determiner", "preposition", "conjunction", "pronoun", "verb", "adverb", "adjective", "noun", "proper noun"
)  # fmt: skip
FORMS = ("VB", "VBD", "VBG", "VBN", "VBZ")
FORM_WORDS = {"VB": "be", "VBD": "was", "VBG": "going", "VBN": "known", "VBZ": "knows"}
FREQUENCIES = {"be": 900, "was": 800, "going": 90, "known": 80, "knows": 7}
TASKS = ("token_reconstruction", "mask_prediction")
PROBED = ("pos", "constituent", "srl", "coref")
RELATIONS = ("P17", "P19", "P36")
FACTS = 300  # of a relation
EXAMPLES = 400  # of RTE
HELD = {"learned": "000000111", "forgotten": "001111110", "oscillating": "000110010", "never": "000000000"}
LATE = ("000000001", "000000011", "000000111")  # every fact is learned, most of them at the end
Curves = dict[tuple[str, str, int | None], list[float]]


def shows(root: Path) -> Run:
    """Plant curves that show every finding."""
    words = _words((1, 1, 2, 2, 4, 8, 16, 32, 64), (2, 4, 8, 16, 32), (2, 8, 32), delay=(1, 2))
    layers = _layers(lambda task, layer: _stepped(4 * layer, 0.9, 0.9 if layer == 1 and task != "srl" else 0.7))
    heads = {("head_behaviour_same", head, layer): _stepped(32 if layer < 3 else 2, 0.4) for head, layer in _heads()}
    return _store(root, words | layers | heads, list(HELD.values()), learned_at=8)


def contradicts(root: Path) -> Run:
    """Plant the same curves with reversed labels: categories, forms, bands, tasks and layers."""
    words = _words((64, 32, 16, 8, 4, 2, 2, 1, 1), (32, 16, 8, 4, 2), (32, 8, 2), delay=(2, 1))
    starts = {"pos": 64, "constituent": 64, "srl": 4, "coref": 4}
    layers = _layers(lambda task, layer: _stepped(max(1, starts[task] // layer), 0.9 - 0.1 * layer, 1 - 0.1 * layer))
    heads = {("head_behaviour_same", head, layer): _stepped(2 if layer < 3 else 32, 0.4) for head, layer in _heads()}
    return _store(root, words | layers | heads, list(LATE), learned_at=128)


def noise(root: Path, seed: int) -> Run:
    """Plant shares of 60 cases each that rise, fall and stay by chance, so that many intervals are open."""
    rng = np.random.default_rng(seed)

    def drawn(*_: object) -> list[float]:
        truth = np.clip(rng.uniform(0, 0.6) + rng.uniform(-0.05, 0.12, len(STEPS)).cumsum(), 0, 1)
        return (rng.binomial(60, truth) / 60).tolist()

    groups = [(task, group, None) for task in TASKS for group in (*CATEGORIES, *FORMS, *BANDS)]
    curves = {key: drawn() for key in groups} | _layers(drawn)
    curves |= {("head_behaviour_same", head, layer): drawn() for head, layer in _heads()}
    histories = ["".join(map(str, rng.integers(0, 2, len(STEPS)))) for _ in range(40)] + ["0" * len(STEPS)] * 200
    return _store(root, curves, histories, learned_at=int(rng.choice(STEPS[1:])), n=60)


# === Curves ===


def _stepped(start: int, high: float, last: float | None = None, low: float = 0.3) -> list[float]:
    """Return `low` before a step and `high` from there on; the last value is `last` if given."""
    values = [high if step >= start else low for step in STEPS]
    return [*values[:-1], high if last is None else last]


def _words(
    categories: tuple[int, ...], forms: tuple[int, ...], bands: tuple[int, ...], delay: tuple[int, int]
) -> Curves:
    """Return curves of groups that rise from 0 to 0.8 at the given steps, times the delay of each task."""
    starts = dict(zip((*CATEGORIES, *FORMS, *BANDS), (*categories, *forms, *bands), strict=True))
    return {
        (task, group, None): _stepped(start * times, 0.8, low=0.0)
        for task, times in zip(TASKS, delay, strict=True)
        for group, start in starts.items()
    }


def _layers(curve: Callable[[str, int], list[float]]) -> Curves:
    """Return a curve of edge probing for each task and layer; the embeddings do not change."""
    probed = {("edge_probing_f1", task, layer): curve(task, layer) for task in PROBED for layer in (1, 2, 3, 4)}
    return probed | {("edge_probing_f1", task, 0): [0.2] * len(STEPS) for task in PROBED}


def _heads() -> Iterator[tuple[str, int]]:
    return ((head, layer) for layer in (1, 2, 3, 4) for head in ("1", "2"))


# === The store ===


def _store(root: Path, curves: Curves, histories: list[str], learned_at: int, n: int = N) -> Run:
    """Write all tables of a run, compacted; the facts cycle through the histories, in which "1" is a right answer."""
    run = make_run(root)
    run.path.mkdir(parents=True)
    (run.path / "frequencies.tsv").write_text("".join(f"{word}\t{times}\n" for word, times in FREQUENCIES.items()))
    for i, step in enumerate(STEPS):
        for metric in {name for name, _, _ in curves}:
            of = {(group, layer): values[i] for (name, group, layer), values in curves.items() if name == metric}
            findings = Findings(scores=[Score(metric, value, n, group, layer) for (group, layer), value in of.items()])
            if metric in TASKS:
                findings.words = [WordCount(metric, form, word, 3, 1) for form, word in FORM_WORDS.items()]
            results.write(checkpoint_at(run, step), metric, findings)
        results.write(checkpoint_at(run, step), "world_knowledge", _facts(histories, i))
        results.write(checkpoint_at(run, step), "finetuning:rte:1", _tuned(step >= learned_at))
    results.compact(run)
    return run


def _facts(histories: list[str], place: int) -> Findings:
    """Return the answers to every fact at one step, and the precision of each relation and of all."""
    cloze, turn = [], count()
    for relation in RELATIONS:
        for number in range(FACTS):
            rank = 1 if histories[next(turn) % len(histories)][place] == "1" else 9
            cloze.append(ClozeAnswer(f"{relation}-{number}", relation, "it", "one", rank, 0.5, "one", 0.5))
    groups = {relation: [row for row in cloze if row.relation == relation] for relation in RELATIONS} | {"all": cloze}
    shares = {group: sum(row.rank == 1 for row in rows) / len(rows) for group, rows in groups.items()}
    scores = [Score("world_knowledge", share, len(groups[group]), group) for group, share in shares.items()]
    return Findings(scores=scores, cloze=cloze)


def _tuned(learned: bool) -> Findings:
    """Return results of RTE, answered at chance level or correctly."""
    answers = [TaskAnswer("rte", 1, i, float(i % 2), float(i % 2 if learned else i // 2 % 2)) for i in range(EXAMPLES)]
    score = 1.0 if learned else 0.5
    return Findings(
        task_scores=[TaskScore("rte", 1, "model", "accuracy", score, EXAMPLES)],
        tuning=[TuningPoint("rte", 1, 1, 0.7, score)],
        answers=answers,
    )
