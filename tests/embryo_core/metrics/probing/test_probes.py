"""Tests of linear probes: features, loss, gradient and F1 equal those of transformers, autograd and plain formulas."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AlbertModel

from benchmarks.paper_probing import PaperProbing
from embryo_core.corpora import read_probing
from embryo_core.engine.model import Model
from embryo_core.errors import BrokenCheckpoint
from embryo_core.metric import Limits
from embryo_core.metrics.probing import probes as module
from embryo_core.metrics.probing.data import UNSEEN, ProbingData, ProbingTask, read_tasks
from embryo_core.metrics.probing.probes import RIDGE, Probes, Whitening, cross_entropy, span_features, whitening
from tests.embryo_core.metrics.probing.test_data import write_task
from tests.embryo_core.metrics.probing.test_training import plain, random_task
from tests.rounding import rounding

# === Features ===


PLENTY = 2**30


@pytest.fixture(scope="module")
def data(trained_model: Model, sample: Path) -> ProbingData:
    """Return two tasks of the sample, one of them with two spans."""
    folders = {task: sample / "probing" / task for task in ("constituent", "srl")}
    return read_tasks(folders, trained_model.tokenizer, Limits.for_model(trained_model), None)


def test_span_features_are_mean_states_of_pieces(trained_model: Model, tmp_path: Path):
    """One sentence has a word of several pieces, a span at either end, and a span of the whole sentence."""
    text = "Rivers run past unforgettable towns"
    spans = {"A": (0, 1), "B": (3, 4), "C": (4, 5), "D": (0, 5)}
    folder = write_task(tmp_path / "t", train=[(text, list(spans.items()))])
    data = read_tasks({"t": folder}, trained_model.tokenizer, Limits.for_model(trained_model), None)
    features = span_features(trained_model, data, PLENTY)
    pieces = [trained_model.tokenizer.encode_words([word]).ids.tolist() for word in text.split()]
    ids = [trained_model.tokenizer.cls_id, *(i for own in pieces for i in own), trained_model.tokenizer.sep_id]
    plain = AlbertModel.from_pretrained(trained_model.checkpoint.path, dtype=torch.float32).eval()
    with torch.no_grad():
        states = plain(torch.tensor([ids]), output_hidden_states=True).hidden_states
    own = data.tasks[0].train
    for (span,), label in zip(own.spans, own.labels, strict=True):
        first, last = spans[data.tasks[0].labels[label]]
        start = 1 + sum(len(own) for own in pieces[:first])
        end = start + sum(len(own) for own in pieces[first:last])
        for layer in range(3):
            expected = states[layer][0, start:end].mean(0)
            assert_as_stored(trained_model, features[layer, span], expected)


def test_states_beyond_float16_are_an_error(trained_model: Model, data: ProbingData, monkeypatch: pytest.MonkeyPatch):
    """Without it, F1 would be of probes whose loss is NaN."""
    states = trained_model.hidden_states

    def one_large(ids: np.ndarray) -> np.ndarray:
        large = states(ids).copy()
        large[1, :, :, 0] = 70_000
        return large

    monkeypatch.setattr(trained_model, "hidden_states", one_large)
    with pytest.raises(BrokenCheckpoint, match="65,504"):
        span_features(trained_model, data, PLENTY)


def assert_as_stored(model: Model, features: torch.Tensor, expected: torch.Tensor) -> None:
    """Check that features are as expected, but for rounding in the float32 pass and in storage as float16."""
    tolerance = rounding(model, model.max_positions, expected.numpy())
    torch.testing.assert_close(features.float(), expected, atol=tolerance, rtol=torch.finfo(torch.float16).eps)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_task_features_equal_the_papers(trained_model: Model, data: ProbingData, sample: Path, layer: int):
    """Every target of the test sets is compared, with the two spans of a pair in order."""
    paper = PaperProbing(trained_model.checkpoint.path, trained_model.checkpoint.run.tokenizer)
    features = span_features(trained_model, data, PLENTY)[layer]
    for task in data.tasks:
        expected, labels = paper.features(read_probing(sample / "probing" / task.name, "test"), layer)
        ours = features[torch.from_numpy(task.test.spans)].flatten(1).float()
        assert_as_stored(trained_model, ours, expected)
        assert [task.labels[label] if label >= 0 else None for label in task.test.labels] == [
            label if label in task.labels else None for label in labels
        ]


def test_features_on_disk_equal_those_in_memory(trained_model: Model, data: ProbingData):
    """Above the memory limit, features are mapped from an unnamed file."""
    in_memory, on_disk = span_features(trained_model, data, PLENTY), span_features(trained_model, data, 1000)
    assert torch.equal(in_memory, on_disk) and in_memory.dtype == torch.float16
    assert "(deleted)" in Path("/proc/self/maps").read_text() if Path("/proc/self/maps").exists() else True


def test_parallel_passes_change_no_bit_of_the_features(
    trained_model: Model, data: ProbingData, monkeypatch: pytest.MonkeyPatch
):
    """Single forward passes are compared with three in parallel, which finish in any order."""
    monkeypatch.setattr(trained_model, "parallel_passes", 1)
    alone = span_features(trained_model, data, PLENTY)
    monkeypatch.setattr(trained_model, "parallel_passes", 3)
    assert torch.equal(alone, span_features(trained_model, data, PLENTY))
    assert np.isfinite(alone.numpy()).all()


# === Loss ===


EPSILON = float(np.finfo(np.float32).eps)


def test_loss_and_gradient_equal_autograd():
    """Each probe is compared with autograd in float64; a float32 logarithm of K exponentials is off by K roundings."""
    torch.manual_seed(0)
    batch, probes, labels = 50, 2, 7
    logits = torch.randn(batch, probes, labels) * 3
    true = torch.randint(0, labels, (batch, probes))
    loss, gradient = cross_entropy(logits.clone(), true)
    exact = logits.double().requires_grad_()
    for probe in range(probes):
        expected = torch.nn.functional.cross_entropy(exact[:, probe], true[:, probe])
        expected.backward()
        roundings = (labels + batch) * EPSILON
        torch.testing.assert_close(loss[probe].double(), expected, rtol=roundings, atol=roundings)
    torch.testing.assert_close(gradient.double(), exact.grad, rtol=0, atol=(labels + 20) * EPSILON / batch)


# === Whitening ===


def correlated_features(n: int, features: int) -> torch.Tensor:
    """Return centred features [n, D] that are correlated, with variances far apart."""
    torch.manual_seed(0)
    mixing = torch.randn(features, features) * torch.logspace(0, -2, features)
    sample = torch.randn(n, features) @ mixing
    return sample - sample.mean(0)


@pytest.mark.parametrize(("n", "share"), [(10**6, RIDGE), (120, 1 / 100)])
def test_whitening_turns_covariance_into_the_identity(n: int, share: float):
    """The covariance includes the ridge: a direction of variance v comes out with v / (v + ridge)."""
    sample = correlated_features(5000, 12)
    matrix = whitening(sample, n).matrix.double()
    covariance = (sample.T @ sample / len(sample)).double()
    ridge = share * covariance.diagonal().mean() * torch.eye(12)
    roundings = np.finfo(np.float32).eps * len(covariance) * torch.linalg.cond(covariance + ridge).item()
    whitened_covariance = matrix @ (covariance + ridge) @ matrix.T
    torch.testing.assert_close(whitened_covariance, torch.eye(12, dtype=torch.double), rtol=0, atol=roundings)


def test_ridge_grows_when_targets_are_few():
    """With 10 targets per feature, the ridge is a hundredth of the mean variance, which bounds the matrix's norm."""
    sample = correlated_features(120, 12)
    covariance = sample.T @ sample / len(sample)
    largest = torch.linalg.matrix_norm(whitening(sample, 120).matrix, ord=2)
    assert largest <= 1 / torch.sqrt(covariance.diagonal().mean() / 100)


def test_whitening_gradient_equals_autograd():
    """The gradient is that of sum(G * W) with respect to V, where W = V P."""
    torch.manual_seed(1)
    matrix, learned, outer = torch.randn(6, 6), torch.randn(2, 3, 6), torch.randn(2, 3, 6)
    learned.requires_grad_()
    (learned @ matrix * outer).sum().backward()
    layer = Whitening(matrix)
    with torch.no_grad():
        torch.testing.assert_close(layer.weights(learned), learned @ matrix)
        torch.testing.assert_close(layer.gradient(outer), learned.grad)


# === Probes ===


EPSILON = float(np.finfo(np.float32).eps)


@pytest.fixture(params=[False, True], ids=["plain", "whitened"])
def probes(request) -> tuple[Probes, torch.Tensor, ProbingTask]:
    """Return probes with random values, their states, and their task."""
    features, task = random_task(300, 4, 8, least=1)
    own = Probes(features[0], task, whitened=request.param)
    torch.manual_seed(0)
    for value in own.values:
        value.normal_()
    return own, features[0], task


def test_probe_gradient_equals_autograd(probes):
    """The loss is the cross-entropy of W (x - mean) + c plus, if whitened, w² / 2 of standardised weights over n."""
    own, features, task = probes
    loss, gradients = own.loss(task.train)
    whitened = own._whitening is not None
    x = torch.from_numpy(plain(features, task.train)).double()
    variance = x.var(0, correction=0)
    x = x - x.mean(0) if whitened else x
    for i, labels in enumerate((task.train.labels, task.train.control)):
        values = [value[i].double().requires_grad_() for value in own.values]
        weights = values[0] @ own._whitening.matrix.double() if whitened else values[0]
        expected = torch.nn.functional.cross_entropy(x @ weights.T + values[1], torch.from_numpy(labels))
        penalty = (weights**2 * variance).sum() / 2 / len(x) if whitened else 0
        (expected + penalty).backward()
        logit = EPSILON * x.shape[1] * (x.abs() @ weights.abs().T).max().item()  # of one logit, from D additions
        assert loss[i].item() == pytest.approx(expected.item(), abs=2 * logit + EPSILON * len(x))
        mean = (2 * logit + EPSILON * len(x)) * x.abs().max().item()  # of errors times features, over n
        spread = own._whitening.matrix.abs().sum(1).max().item() if whitened else 1.0
        for gradient, value in zip(gradients, values, strict=True):
            error = (gradient[i].double() - value.grad).abs().max().item()
            assert error <= mean * spread < value.grad.abs().max().item() / 4


def test_whitening_uses_all_training_targets():
    """Their number decides how much small variances are trusted."""
    features, task = random_task(300, 4, 8)
    x = torch.from_numpy(plain(features[0], task.train))
    own = Probes(features[0], task, whitened=True)
    assert torch.equal(own._whitening.matrix, whitening(x - x.mean(0), 300).matrix)


def test_f1_is_the_share_of_right_labels(probes, monkeypatch: pytest.MonkeyPatch):
    """Chunks of 77 targets give the same F1 of both probes; a label missing in training is never right."""
    own, features, task = probes
    test = replace(task.test, labels=np.where(np.arange(len(task.test.labels)) % 3, task.test.labels, UNSEEN))
    weights, bias = own.weights
    x = torch.from_numpy(plain(features, test)) - own._mean
    given = [(x @ weights[i].T + bias[i]).argmax(1).numpy() for i in (0, 1)]
    expected = [float((given[0] == test.labels).mean()), float((given[1] == test.control).mean())]
    assert own.f1(test, weights, bias) == expected
    monkeypatch.setattr(module, "CHUNK_SIZE", 77)
    assert own.f1(test, weights, bias) == expected
