"""Time word surprisals and geometry of one checkpoint by our metrics and by plain loops with transformers and numpy.

    python -m benchmarks.words_and_geometry RUN --words FILE --text PATH --treebank PATH [--step N] [--loop N]

The loops take one sentence at a time on all cores, like published code, for --loop evenly spaced occurrences or
sentences; their time is scaled to all. An encoder's word is masked from its first piece on, then from its second, and
so on, as one batch. Ours and the loops run in turn in one process, and their numbers are compared. Seconds are CPU
seconds of this process on all cores, so that other programs do not count.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.minimal_pairs import Loop
from embryo_core import corpora, runs
from embryo_core.engine.device import parallel_passes
from embryo_core.engine.model import Model, load
from embryo_core.metric import Limits, Source
from embryo_core.metrics.geometry import Geometry, WordSample, word_states
from embryo_core.metrics.word_surprisal import EncodedWords, WordSurprisal

TOLERANCE = 2e-3  # allowed difference, relative except of states: occurrences are stored in float16


def main() -> int:
    """Print seconds, ratios and differences; return 1 if a difference exceeds TOLERANCE."""
    options = _options()
    run = runs.open_run(options.run)
    checkpoint = runs.loadable_checkpoints(run, None if options.step is None else [options.step])[-1]
    model = load(checkpoint)
    loop = Loop(model)
    torch.set_num_threads(parallel_passes())
    print(f"{run.name}, step {checkpoint.step}; {parallel_passes()} cores")
    source = corpora.open_source(options.words, occurrences=options.occurrences)
    words = replace(source, second=corpora.open_source(options.text))
    return _words(model, loop, words, options.loop) | _geometry(model, loop, options.treebank, options.loop)


def _words(model: Model, loop: Loop, source: Source, max_words: int) -> int:
    """Compare word surprisals of ours and of the loop; return 1 if they differ by more than TOLERANCE."""
    metric = WordSurprisal()
    start = time.process_time()
    data = metric.read(model.tokenizer, Limits.for_model(model), source)
    surprisals = metric.compute(model, data).surprisals
    our_seconds = time.process_time() - start
    our_bits = np.concatenate([np.frombuffer(word.occurrences, np.float16) for word in surprisals]).astype(float)
    chosen = np.linspace(0, len(our_bits) - 1, min(max_words, len(our_bits))).astype(int)
    start = time.process_time()
    loop_bits = np.array([_surprisal(loop, data, i) for i in chosen])
    seconds = (time.process_time() - start) * len(our_bits) / len(chosen)
    worst = np.max(np.abs(our_bits[chosen] - loop_bits) / np.maximum(1, loop_bits))
    print(f"words: {data.summary['note']}")
    _print(our_seconds, seconds, f"{len(chosen)} occurrences")
    print(f"largest relative difference of an occurrence {worst:.1e}")
    return int(worst > TOLERANCE)


@torch.inference_mode()
def _surprisal(loop: Loop, data: EncodedWords, i: int) -> float:
    """Return the surprisal (bits) of one occurrence, computed by transformers."""
    ids, first = torch.tensor(data.sentences[data.sentence[i]]), int(loop.first is not None)
    at = torch.arange(first + data.first[i], first + data.end[i])
    if loop.masked:
        copies = ids.repeat(len(at), 1)
        for row, column in enumerate(at):
            copies[row, column : at[-1] + 1] = torch.tensor(loop.mask)
        output = loop.network(copies)
        logits = (output.logits if "logits" in output else output.prediction_logits)[torch.arange(len(at)), at]
    else:
        logits = loop.network(ids[None]).logits[0, at - 1]
    return -torch.log_softmax(logits.double(), -1)[torch.arange(len(at)), ids[at]].sum().item() / np.log(2)


def _geometry(model: Model, loop: Loop, treebank: Path, max_sentences: int) -> int:
    """Compare states and measures of geometry; return 1 if they differ by more than TOLERANCE."""
    metric = Geometry()
    start = time.process_time()
    data = metric.read(model.tokenizer, Limits.for_model(model), corpora.open_source(treebank))
    scores = metric.compute(model, data).scores
    our_seconds = time.process_time() - start
    our_measures = {(score.metric.removeprefix("geometry_"), score.layer or 0): score.value for score in scores}
    sample = np.linspace(0, len(data.sentences) - 1, min(max_sentences, len(data.sentences))).astype(int)
    start = time.process_time()
    states = {i: _states(loop, data.sentences[i]) for i in sample.tolist()}
    seconds = (time.process_time() - start) * len(data.sentences) / len(sample)
    our_states = word_states(model, data).astype(float)
    start = time.process_time()
    loop_measures = [_measures(layer, below) for layer, below in zip(our_states, [None, *our_states], strict=False)]
    seconds += time.process_time() - start
    worst_state = max(
        float(np.abs(our_states[:, word] - _mean(states[sentence], data, word)).max())
        for word, sentence in enumerate(data.sentence.tolist())
        if sentence in states
    )
    worst_measure, worst_name = max(
        (abs(loop_measures[layer][name] / value - 1), name) for (name, layer), value in our_measures.items()
    )
    print(f"geometry: {data.summary['note']}, {len(our_states)} layers")
    _print(our_seconds, seconds, f"{len(sample)} sentences")
    print(f"largest difference of a state {worst_state:.1e}, of a measure {worst_measure:.1e} (relative, {worst_name})")
    return int(worst_state > TOLERANCE or worst_measure > TOLERANCE)


@torch.inference_mode()
def _states(loop: Loop, ids: np.ndarray) -> np.ndarray:
    """Return the states [layers + 1, L, D] of one sentence, computed by transformers."""
    output = loop.network(torch.tensor(ids)[None], output_hidden_states=True)
    return torch.cat(output.hidden_states).numpy()


def _mean(states: np.ndarray, data: WordSample, word: int) -> np.ndarray:
    """Return the mean state of a word's pieces in each layer, [layers + 1, D]."""
    return states[:, data.start[word] : data.end[word]].mean(axis=1)


def _measures(states: np.ndarray, below: np.ndarray | None) -> dict[str, float]:
    """Compute every measure of a layer's states [n, D] from its formula, with whole matrices."""
    n, ranks = len(states), np.arange(11, 101)
    singular = np.linalg.svd(states, compute_uv=False)
    p = singular / singular.sum() + 1e-7
    spectrum = np.linalg.eigvalsh(np.cov(states.T))[::-1]
    units = states / np.linalg.norm(states, axis=1, keepdims=True)
    distances = np.stack([np.linalg.norm(states - state, axis=1) for state in states])
    distinct = ~np.tril(distances <= 1e-6 * np.linalg.norm(states, axis=1).max(), -1).any(axis=1)
    nearest = np.sort(distances[distinct][:, distinct], axis=1)[:, 1:3]
    kept_count = int(0.9 * len(nearest))
    x = np.sort(np.log(nearest[:, 1] / nearest[:, 0]))[:kept_count]
    y = -np.log(1 - np.arange(1, kept_count + 1) / len(nearest))
    measures = {
        "rank_me": np.exp(-(p * np.log(p)).sum()),
        "participation": spectrum.sum() ** 2 / (spectrum**2).sum(),
        "anisotropy": ((units @ units.T).sum() - n) / (n * (n - 1)),
        "dimension": x @ y / (x @ x),
    }
    if len(fitted := spectrum[10:100]) == len(ranks):
        measures["alpha"] = -np.polyfit(np.log(ranks), np.log(np.maximum(fitted, 1e-300)), 1, w=ranks**-0.5)[0]
    if below is not None:
        measures["cka_below"] = _hsic(states, below) / np.sqrt(_hsic(states, states) * _hsic(below, below))
    return {name: float(value) for name, value in measures.items()}


def _hsic(first: np.ndarray, second: np.ndarray) -> float:
    """Return the unbiased HSIC of two sets of states (Song et al., 2012, equation 3)."""
    n = len(first)
    k, m = (centred @ centred.T for centred in (first - first.mean(axis=0), second - second.mean(axis=0)))
    np.fill_diagonal(k, 0)
    np.fill_diagonal(m, 0)
    total = k.sum() * m.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k @ m).sum()
    return float((np.trace(k @ m) + total) / (n * (n - 3)))


def _print(ours: float, loop: float, sample: str) -> None:
    print(f"ours {ours:.1f} CPU s, the loop {loop:.1f} CPU s (from {sample}), ratio {loop / ours:.1f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.words_and_geometry")
    parser.add_argument("run")
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--occurrences", type=int, default=16, help="of a word (default 16)")
    parser.add_argument("--step", type=int, help="default: the last")
    parser.add_argument("--loop", type=int, default=200, help="occurrences and sentences of the loops (default 200)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
