"""Tests of probe training: each protocol is followed, F1 equals scikit-learn's, and layers are independent."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from benchmarks import paper_probing
from embryo_core.engine.model import Model
from embryo_core.metric import Limits
from embryo_core.metrics.probing.data import UNSEEN, ProbingTask, Targets, read_tasks
from embryo_core.metrics.probing.probes import Probes, span_features
from embryo_core.metrics.probing.training import PROTOCOLS, Protocol, Regimen, _batches, train_all, train_probes
from tests.embryo_core.metrics.probing.test_data import write_task

# === Protocols ===


FAST, PAPER = PROTOCOLS["fast"], PROTOCOLS["paper"]


class ScriptedProbe:
    """Hold a probe with one weight and one bias, and its regimen."""

    def __init__(self, protocol: Protocol):
        self.values = torch.zeros(1), torch.zeros(1)
        self.regimen = Regimen(self.values, protocol)

    def move(self, left: float = 1.0, gradient: float = 1.0) -> float:
        """Return how far one step on these gradients moves the weight; Adam's first moves it by the learning rate."""
        before = self.values[0].item()
        self.regimen.step((torch.full((1,), gradient), torch.zeros(1)), left)
        return before - self.values[0].item()

    def evaluate(self, *f1: float) -> None:
        """Record evaluations with these F1; the weight at each is its number from 0."""
        for number, value in enumerate(f1):
            self.regimen.record(value, (torch.tensor([float(number)]),))

    @property
    def best(self) -> int:
        """Return the number of the evaluation whose weights were kept."""
        return int(self.regimen.best[0])


@pytest.mark.parametrize(
    ("targets", "batches"),
    [(1, 200), (1024, 200), (1025, 400), (4097, 1000), (200 * 1024, 1000), (200 * 1024 + 1, 1010), (301 * 1024, 1510)],
)
def test_fast_protocol_has_1000_batches_within_epoch_limits(targets: int, batches: int):
    """The limits are 5 and 200 epochs; the number of batches is rounded up to a multiple of the ten evaluations."""
    assert (FAST.length(targets), FAST.evaluations, FAST.batch) == (batches, 10, 1024)


def test_paper_protocol_has_the_papers_length():
    """The number of batches does not depend on the number of targets; evaluations and batch size are the paper's."""
    for targets in (1, 10**6):
        assert PAPER.length(targets) == paper_probing.MAX_BATCHES == PAPER.evaluations * paper_probing.EVALUATE_EVERY
    assert PAPER.batch == paper_probing.BATCH_SIZE


def test_fast_learning_rate_falls_linearly():
    """The rate is proportional to the share of iterations that remain; Adam's first step is as long as the rate."""
    assert ScriptedProbe(FAST).move(1) == pytest.approx(0.03, rel=1e-6)
    assert ScriptedProbe(FAST).move(0.25) == pytest.approx(0.03 / 4, rel=1e-6)


def test_paper_rate_survives_four_evaluations_without_improvement():
    """The share of iterations that remain has no effect."""
    probe = ScriptedProbe(PAPER)
    probe.evaluate(0.5, *[0.5] * 4)
    assert probe.move(0.1) == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.parametrize(("evaluations", "share"), [(5, 1 / 2), (6, 1 / 4), (19, 2**-15)])
def test_paper_rate_halves_from_the_fifth_evaluation_without_improvement(evaluations, share):
    """Adam's moments are reset, so the next step is as long as the new rate whatever the gradients before."""
    probe = ScriptedProbe(PAPER)
    probe.move(gradient=-100.0)
    probe.evaluate(0.5, *[0.4] * evaluations)
    before = probe.values[0].item()
    assert probe.move() == pytest.approx(1e-4 * share, abs=before * torch.finfo(torch.float32).eps)


def test_better_f1_restarts_the_count_of_evaluations():
    """Evaluations without improvement are counted from 0 again, and the rate stays halved."""
    probe = ScriptedProbe(PAPER)
    probe.evaluate(0.5, *[0.5] * 5, 0.6, *[0.6] * 4)
    assert probe.move() == pytest.approx(1e-4 / 2, rel=1e-6)
    assert not probe.regimen.stopped


def test_paper_training_stops_after_20_evaluations_without_improvement():
    """Training goes on after 19; the fast protocol does not stop even after 100."""
    probe, fast = ScriptedProbe(PAPER), ScriptedProbe(FAST)
    probe.evaluate(0.5, *[0.5] * 19)
    assert not probe.regimen.stopped
    probe.evaluate(0.5)
    fast.evaluate(0.5, *[0.5] * 100)
    assert probe.regimen.stopped and not fast.regimen.stopped


def test_best_development_weights_are_kept():
    """For equal F1, the fast protocol keeps the last evaluation and the paper's protocol the first."""
    fast, paper = ScriptedProbe(FAST), ScriptedProbe(PAPER)
    for probe in (fast, paper):
        probe.evaluate(0.1, 0.7, 0.3, 0.7, 0.2)
    assert (fast.best, paper.best) == (3, 1)


def test_kept_weights_are_a_copy():
    """Later steps do not change them."""
    probe = ScriptedProbe(FAST)
    probe.move()
    probe.regimen.record(0.5, probe.values)
    kept = probe.regimen.best[0].item()
    probe.move()
    assert probe.regimen.best[0].item() == kept != probe.values[0].item()


def test_stopped_probe_ignores_later_evaluations():
    """Its partner in the layer may train on, so evaluations go on; even a better F1 is not recorded."""
    probe = ScriptedProbe(PAPER)
    probe.evaluate(0.5, *[0.4] * 20, 0.9)
    assert probe.best == 0 and probe.regimen.stopped


def test_paper_protocol_clips_gradient_norm_at_5():
    """The norm is of weight and bias together; shorter gradients are unchanged, and the fast protocol does not clip.

    The length of Adam's first step does not depend on the gradient. The second step's does, so it is compared, after a
    first gradient of length 1.
    """

    def second(protocol: Protocol, gradient: float, bias: float = 0.0) -> float:
        values = torch.zeros(1), torch.zeros(1)
        regimen = Regimen(values, replace(protocol, learning_rate=1.0, patience=PAPER.patience))
        regimen.step((torch.ones(1), torch.zeros(1)), 1.0)
        regimen.step((torch.full((1,), gradient), torch.tensor([bias])), 1.0)
        return values[0].item()

    assert second(PAPER, 40.0) == pytest.approx(second(FAST, 5.0), rel=1e-6)
    assert second(PAPER, 30.0, bias=40.0) == pytest.approx(second(FAST, 3.0), rel=1e-6)
    assert second(PAPER, 4.0) == pytest.approx(second(FAST, 4.0), rel=1e-6)
    assert second(FAST, 40.0) != pytest.approx(second(FAST, 5.0), rel=1e-2)


# === Tasks to learn ===


FAST, PAPER = PROTOCOLS["fast"], PROTOCOLS["paper"]


@pytest.fixture(scope="module")
def probing(
    trained_model: Model, sample: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[torch.Tensor, ProbingTask]:
    """Return features of the tiny model, and a task with enough targets: the first vowel of the word before."""
    rows = []
    for line in (sample / "text.txt").read_text(encoding="utf-8").splitlines():
        words = line.split()[:40]
        labels = [next((c for c in word.lower() if c in "aeiou"), "none") for word in words]
        rows.append((" ".join(words), [(labels[i], (i + 1, i + 2)) for i in range(len(words) - 1)]))
    rows = [row for row in rows if row[1]]
    splits = {"train": rows[: len(rows) * 3 // 5], "dev": rows[len(rows) * 3 // 5 : len(rows) * 3 // 4]}
    folder = write_task(tmp_path_factory.mktemp("vowel") / "t", **splits, test=rows[len(rows) * 3 // 4 :])
    data = read_tasks({"vowel": folder}, trained_model.tokenizer, Limits.for_model(trained_model), None)
    return span_features(trained_model, data, 2**30), data.tasks[0]


def plain(features: torch.Tensor, targets: Targets) -> np.ndarray:
    """Return the features [n, D] of the targets."""
    return features[torch.from_numpy(targets.spans)].flatten(1).float().numpy()


def random_task(n: int, labels: int, features: int, least: float = 1e-2) -> tuple[torch.Tensor, ProbingTask]:
    """Return states and a task on pairs of spans, with noisy linear labels.

    The features are correlated, with standard deviations from 1 down to about `least`.
    """
    random = np.random.default_rng(0)
    mixing = random.normal(size=(features, features)) * np.geomspace(1, least, features)
    states = (random.normal(size=(6000, features)) @ mixing + 0.3).astype(np.float16)
    weights = random.normal(size=(2 * features, labels)) / np.tile(states.astype(float).std(0), 2)[:, None]
    splits = []
    for size in (n, 1000, 2000):
        spans = random.integers(0, len(states), size=(size, 2))
        logits = states[spans].reshape(size, -1).astype(np.float32) @ weights
        own = (logits + random.gumbel(size=logits.shape)).argmax(1)
        splits.append(Targets(spans, own, random.integers(0, labels, size)))
    return torch.from_numpy(states)[None], ProbingTask("random", tuple(map(str, range(labels))), *splits)


# === Optimum ===


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_f1_equals_scikit_learns(probing, layer):
    """A thousand batches come within 0.01 of logistic regression on the same features, standardised, in every layer."""
    features, task = probing
    train_x, test_x = plain(features[layer], task.train), plain(features[layer], task.test)
    mean, deviation = train_x.mean(0), train_x.std(0)
    reference = LogisticRegression(max_iter=2000).fit((train_x - mean) / deviation, task.train.labels)
    expected = reference.score((test_x - mean) / deviation, task.test.labels)
    assert len(task.train.labels) > 1000
    (probe,) = train_probes(features[layer : layer + 1], task, replace(FAST, max_epochs=None))
    assert probe.f1[0] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("n", "labels"), [(4000, 2), (4000, 7), (400, 5)])
def test_f1_of_span_pairs_equals_scikit_learns(n, labels):
    """The features are correlated, their variances differ widely, and targets are few; control F1 is at chance."""
    features, task = random_task(n, labels, 24)
    train_x, test_x = plain(features[0], task.train), plain(features[0], task.test)
    mean, deviation = train_x.mean(0), train_x.std(0)
    reference = LogisticRegression(max_iter=5000).fit((train_x - mean) / deviation, task.train.labels)
    expected = reference.score((test_x - mean) / deviation, task.test.labels)
    (probe,) = train_probes(features, task, FAST)
    assert probe.f1[0] == pytest.approx(expected, abs=0.015)
    assert probe.f1[1] == pytest.approx(1 / labels, abs=0.06)  # random labels cannot be learned


def test_epoch_has_every_target_once_in_a_new_order():
    """Batches have equal sizes, at most 300: 1,000 targets make four of 250, not three of 300 and a smaller one."""
    endless = _batches(1000, 300)
    epochs = [[range(1000)[next(endless)] for _ in range(4)] for _ in range(5)]
    assert all(sorted(row for batch in epoch for row in batch) == [*range(1000)] for epoch in epochs)
    assert {len(batch) for epoch in epochs for batch in epoch} == {250}
    assert len({tuple(batch[0] for batch in epoch) for epoch in epochs}) > 1


def test_each_step_receives_the_share_of_iterations_left(monkeypatch: pytest.MonkeyPatch):
    """The share falls linearly from 1 at the first of 20 batches to 1/20 at the last, for both probes of the layer."""
    remaining = []
    monkeypatch.setattr(Regimen, "step", lambda self, gradients, left: remaining.append(left))
    train_probes(*random_task(200, 2, 4), replace(FAST, iterations=20, min_epochs=1))
    assert remaining == pytest.approx([batches / 20 for batches in range(20, 0, -1) for _ in range(2)])


# === Evaluations in development ===


def test_curve_point_has_mean_loss_since_the_previous_one(monkeypatch: pytest.MonkeyPatch):
    """The mean is over the batches in between, for the task and for its control task."""
    losses, loss = [], Probes.loss

    def noted(probes: Probes, batch: Targets) -> tuple:
        losses_of_batch = loss(probes, batch)
        losses.append(losses_of_batch[0].tolist())
        return losses_of_batch

    monkeypatch.setattr(Probes, "loss", noted)
    features, task = random_task(400, 3, 4)
    (probe,) = train_probes(features, task, replace(FAST, batch=64, iterations=20, min_epochs=1, evaluations=5))
    assert len(losses) == 20 and len(probe.curve) == 5
    for i, point in enumerate(probe.curve):
        assert point.train_loss == pytest.approx(np.mean(losses[4 * i : 4 * i + 4], axis=0))


@pytest.mark.parametrize(
    "protocol", [replace(FAST, iterations=200, min_epochs=1), replace(PAPER, iterations=60, batch=100)]
)
def test_best_development_weights_are_tested(protocol):
    """Here the development set is tested, so test F1 is the maximum of the curve, which need not be its last point."""
    features, task = random_task(400, 5, 24)
    task = replace(task, test=task.dev)
    (probe,) = train_probes(features, task, protocol)
    curves = list(zip(*(point.dev_f1 for point in probe.curve), strict=True))
    assert probe.f1 == tuple(map(max, curves))
    assert any(curve[-1] < max(curve) for curve in curves)


def test_paper_training_stops_if_development_f1_stays_at_0(probing):
    """All development labels are unseen, so no evaluation is better than the first, and twenty more are made."""
    features, task = probing
    unseen = np.full_like(task.dev.labels, UNSEEN)
    dev = replace(task.dev, labels=unseen, control=unseen)
    (probe,) = train_probes(features[:1], replace(task, dev=dev), replace(PAPER, iterations=300))
    assert [point.iteration for point in probe.curve] == [10 * i for i in range(1, 22)]
    assert {point.dev_f1 for point in probe.curve} == {(0.0, 0.0)}


# === Layers and tasks together ===


@pytest.mark.parametrize(("rising", "evaluations"), [("task", 10), ("control", 10), ("neither", 3)])
def test_layer_trains_until_both_probes_have_stopped(monkeypatch: pytest.MonkeyPatch, rising: str, evaluations: int):
    """One probe improves while the other stops; if neither improves, both stop two evaluations after the first."""
    rising_f1 = iter(range(1, 100))

    def scripted(probes: Probes, targets: Targets, *weights: torch.Tensor) -> list[float]:
        own = next(rising_f1) / 100
        return [own if rising == name else 0.5 for name in ("task", "control")]

    monkeypatch.setattr(Probes, "f1", scripted)
    patient = replace(PAPER, batch=64, iterations=20, evaluations=10, patience=replace(PAPER.patience, stop=2))
    (probe,) = train_probes(*random_task(200, 2, 4), patient)
    assert len(probe.curve) == evaluations
    last_iterations = (2 * (10 if rising == name else 3) for name in ("task", "control"))
    assert probe.ends == tuple(last_iterations)


def test_swapping_task_and_control_swaps_results():
    """Each probe is trained, evaluated and tested on its own labels; the F1 of the two differ by more than 0.2."""
    features, task = random_task(400, 4, 8)
    splits = {name: getattr(task, name) for name in ("train", "dev", "test")}
    exchanged = {name: Targets(own.spans, own.control, own.labels) for name, own in splits.items()}
    short = replace(FAST, iterations=100, min_epochs=1)
    (one,), (other,) = (train_probes(features, each, short) for each in (task, replace(task, **exchanged)))
    assert other.f1 == pytest.approx(one.f1[::-1], abs=0.02) and one.f1[0] > one.f1[1] + 0.2
    assert other.curve[-1].dev_f1 == pytest.approx(one.curve[-1].dev_f1[::-1], abs=0.02)


def test_layers_train_together_as_they_do_alone(probing):
    """F1 and every point of the curve are equal bit for bit, so layers can be divided among any number of cores."""
    features, task = probing
    short = replace(FAST, iterations=100, min_epochs=1)
    together = train_probes(features, task, short)
    assert together == [train_probes(features[layer : layer + 1], task, short)[0] for layer in range(3)]


def test_number_of_cores_changes_no_result(probing, monkeypatch: pytest.MonkeyPatch):
    """Results come by task and layer, in order; they are equal on one core and on five, and in a second run."""
    monkeypatch.setitem(PROTOCOLS, "fast", replace(FAST, iterations=50, min_epochs=1))
    features, task = probing
    swapped = replace(task.train, labels=task.train.control)
    tasks = [task, ProbingTask("other", task.labels, swapped, task.dev, task.test)]
    alone = train_all(features, tasks, "fast", cores=1)
    assert [len(layers) for layers in alone] == [3, 3] and alone[0] != alone[1]
    assert alone == train_all(features, tasks, "fast", cores=1) == train_all(features, tasks, "fast", cores=5)


# === Degenerate features and labels ===


def test_single_training_label_is_always_predicted():
    """The test set has the same label only, so F1 is 1."""
    features, task = random_task(200, 1, 8)
    assert train_probes(features, task, replace(FAST, iterations=20))[0].f1[0] == 1


def test_constant_features_predict_the_most_frequent_label():
    """The states of the layer are all equal, so F1 is that label's share of the test targets."""
    features, task = random_task(400, 3, 8)
    (probe,) = train_probes(torch.ones_like(features), task, replace(FAST, iterations=100))
    most_frequent = np.bincount(task.train.labels).argmax()
    assert probe.f1[0] == pytest.approx((task.test.labels == most_frequent).mean())


def test_unseen_labels_count_as_wrong():
    """Half of the test labels are unseen, so F1 is at most 0.5."""
    features, task = random_task(400, 2, 8)
    half = task.test.labels.copy()
    half[: len(half) // 2] = UNSEEN
    unseen = ProbingTask("t", task.labels, task.train, task.dev, replace(task.test, labels=half))
    assert train_probes(features, unseen, replace(FAST, iterations=100))[0].f1[0] <= 0.5


def test_curve_has_a_point_at_every_evaluation(probing):
    """The ten points are evenly spaced up to the last iteration, and the training loss of the task's probe falls."""
    features, task = probing
    curve = train_probes(features[2:], task, FAST)[0].curve
    length = FAST.length(len(task.train.labels))
    assert [point.iteration for point in curve] == [length * i // 10 for i in range(1, 11)]
    assert curve[-1].train_loss[0] < curve[0].train_loss[0]
