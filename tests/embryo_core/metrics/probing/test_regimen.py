"""A probe is trained by Adam, its learning rate follows the protocol, and the weights best in development are kept."""

from dataclasses import replace

import pytest
import torch

from benchmarks import paper_probing
from embryo_core.metrics.probing.regimen import PROTOCOLS, Protocol, Regimen

FAST, PAPER = PROTOCOLS["fast"], PROTOCOLS["paper"]


class Trained:
    """A probe of one weight and one bias, and its regimen."""

    def __init__(self, protocol: Protocol):
        self.values = torch.zeros(1), torch.zeros(1)
        self.regimen = Regimen(self.values, protocol)

    def move(self, left: float = 1.0, gradient: float = 1.0) -> float:
        """How far one step on these gradients moves the weight; by Adam's first step, the learning rate."""
        before = self.values[0].item()
        self.regimen.step((torch.full((1,), gradient), torch.zeros(1)), left)
        return before - self.values[0].item()

    def evaluate(self, *f1: float) -> None:
        """Evaluations with these F1, the weights being their number from 0."""
        for number, value in enumerate(f1):
            self.regimen.evaluated(value, (torch.tensor([float(number)]),))

    @property
    def best(self) -> int:
        """The number of the evaluation whose weights were kept."""
        return int(self.regimen.best[0])


@pytest.mark.parametrize("targets", [1, 1024, 200 * 1024, 200 * 1024 + 1, 301 * 1024])
def test_the_fast_protocol_takes_five_epochs_and_at_least_a_thousand_batches(targets: int):
    """And as many more as make ten equal parts of them, after each of which it is evaluated."""
    batches = max(1000, 5 * len(range(0, targets, 1024)))
    while batches % 10:
        batches += 1
    assert (FAST.length(targets), FAST.evaluations, FAST.batch) == (batches, 10, 1024)


def test_the_paper_protocol_is_as_long_as_the_papers():
    """However many targets there are."""
    for targets in (1, 10**6):
        assert PAPER.length(targets) == paper_probing.BATCHES == PAPER.evaluations * paper_probing.EVERY
    assert PAPER.batch == paper_probing.BATCH


def test_the_fast_protocol_goes_down_a_line_to_0():
    """A first step is as long as the learning rate; the rate is in proportion to what is left."""
    assert Trained(FAST).move(1) == pytest.approx(0.03, rel=1e-6)
    assert Trained(FAST).move(0.25) == pytest.approx(0.03 / 4, rel=1e-6)


def test_the_paper_protocol_keeps_its_rate_for_four_evaluations_without_a_better_f1():
    """And whatever is left of the iterations."""
    probe = Trained(PAPER)
    probe.evaluate(0.5, *[0.5] * 4)
    assert probe.move(0.1) == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.parametrize(("evaluations", "share"), [(5, 1 / 2), (6, 1 / 4), (19, 2**-15)])
def test_from_the_fifth_on_each_halves_the_rate(evaluations, share):
    """Adam begins anew, so that the next step is as long as the new rate whatever the gradients before."""
    probe = Trained(PAPER)
    probe.move(gradient=-100.0)
    probe.evaluate(0.5, *[0.4] * evaluations)
    before = probe.values[0].item()
    assert probe.move() == pytest.approx(1e-4 * share, abs=before * torch.finfo(torch.float32).eps)


def test_a_better_f1_is_waited_for_anew():
    """The count of evaluations without one begins at 0 again; the rate stays where it is."""
    probe = Trained(PAPER)
    probe.evaluate(0.5, *[0.5] * 5, 0.6, *[0.6] * 4)
    assert probe.move() == pytest.approx(1e-4 / 2, rel=1e-6)
    assert not probe.regimen.stopped


def test_the_twentieth_in_a_row_stops_the_paper_protocol():
    """Nineteen do not; and the fast protocol has no patience to lose."""
    probe, fast = Trained(PAPER), Trained(FAST)
    probe.evaluate(0.5, *[0.5] * 19)
    assert not probe.regimen.stopped
    probe.evaluate(0.5)
    fast.evaluate(0.5, *[0.5] * 100)
    assert probe.regimen.stopped and not fast.regimen.stopped


def test_the_best_weights_in_development_are_kept():
    """Not the last; of equal ones the fast protocol keeps the last and the paper's the first."""
    fast, paper = Trained(FAST), Trained(PAPER)
    for probe in (fast, paper):
        probe.evaluate(0.1, 0.7, 0.3, 0.7, 0.2)
    assert (fast.best, paper.best) == (3, 1)


def test_weights_are_kept_as_they_were():
    """Later steps do not change them."""
    probe = Trained(FAST)
    probe.move()
    probe.regimen.evaluated(0.5, probe.values)
    kept = probe.regimen.best[0].item()
    probe.move()
    assert probe.regimen.best[0].item() == kept != probe.values[0].item()


def test_nothing_is_kept_after_the_stop():
    """A probe whose partner in the layer trains on has come to its end."""
    probe = Trained(PAPER)
    probe.evaluate(0.5, *[0.4] * 20, 0.9)
    assert probe.best == 0 and probe.regimen.stopped


def test_the_paper_protocol_clips_a_gradients_norm_at_5():
    """That of weight and bias together; shorter ones stay, and the fast protocol clips none.

    Adam's first step hides the length of a gradient; its second, after one of 1, tells it.
    """

    def second(protocol: Protocol, gradient: float, bias: float = 0.0) -> float:
        values = torch.zeros(1), torch.zeros(1)
        regimen = Regimen(values, replace(protocol, learning_rate=1.0, plateau=PAPER.plateau))
        regimen.step((torch.ones(1), torch.zeros(1)), 1.0)
        regimen.step((torch.full((1,), gradient), torch.tensor([bias])), 1.0)
        return values[0].item()

    assert second(PAPER, 40.0) == pytest.approx(second(FAST, 5.0), rel=1e-6)
    assert second(PAPER, 30.0, bias=40.0) == pytest.approx(second(FAST, 3.0), rel=1e-6)
    assert second(PAPER, 4.0) == pytest.approx(second(FAST, 4.0), rel=1e-6)
    assert second(FAST, 40.0) != pytest.approx(second(FAST, 5.0), rel=1e-2)
