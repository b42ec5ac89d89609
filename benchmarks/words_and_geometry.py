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

ROUNDING = 2e-3  # allowed difference, relative except of states: occurrences are stored in float16


def main() -> int:
    """Print seconds, ratios and differences; return 1 if a difference exceeds ROUNDING."""
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


def _words(model: Model, loop: Loop, source: Source, most: int) -> int:
    """Compare word surprisals of ours and of the loop; return 1 if they differ by more than ROUNDING."""
    metric = WordSurprisal()
    start = time.process_time()
    data = metric.read(model.tokenizer, Limits.for_model(model), source)
    found = metric.compute(model, data).surprisals
    ours = time.process_time() - start
    mine = np.concatenate([np.frombuffer(one.occurrences, np.float16) for one in found]).astype(float)
    chosen = np.linspace(0, len(mine) - 1, min(most, len(mine))).astype(int)
    start = time.process_time()
    theirs = np.array([_surprisal(loop, data, i) for i in chosen])
    seconds = (time.process_time() - start) * len(mine) / len(chosen)
    worst = np.max(np.abs(mine[chosen] - theirs) / np.maximum(1, theirs))
    print(f"words: {data.summary['note']}")
    _print(ours, seconds, f"{len(chosen)} occurrences")
    print(f"largest relative difference of an occurrence {worst:.1e}")
    return int(worst > ROUNDING)


@torch.inference_mode()
def _surprisal(loop: Loop, data: EncodedWords, i: int) -> float:
    """Return the surprisal (bits) of one occurrence, computed by transformers."""
    ids, first = torch.tensor(data.sentences[data.sentence[i]]), int(loop.first is not None)
    at = torch.arange(first + data.first[i], first + data.end[i])
    if loop.masked:
        copies = ids.repeat(len(at), 1)
        for row, place in enumerate(at):
            copies[row, place : at[-1] + 1] = torch.tensor(loop.mask)
        output = loop.network(copies)
        logits = (output.logits if "logits" in output else output.prediction_logits)[torch.arange(len(at)), at]
    else:
        logits = loop.network(ids[None]).logits[0, at - 1]
    return -torch.log_softmax(logits.double(), -1)[torch.arange(len(at)), ids[at]].sum().item() / np.log(2)


def _geometry(model: Model, loop: Loop, treebank: Path, most: int) -> int:
    """Compare states and measures of geometry; return 1 if they differ by more than ROUNDING."""
    metric = Geometry()
    start = time.process_time()
    data = metric.read(model.tokenizer, Limits.for_model(model), corpora.open_source(treebank))
    scores = metric.compute(model, data).scores
    ours = time.process_time() - start
    measured = {(one.metric.removeprefix("geometry_"), one.layer or 0): one.value for one in scores}
    chosen = np.linspace(0, len(data.sentences) - 1, min(most, len(data.sentences))).astype(int)
    start = time.process_time()
    states = {i: _states(loop, data.sentences[i]) for i in chosen.tolist()}
    seconds = (time.process_time() - start) * len(data.sentences) / len(chosen)
    found = word_states(model, data).astype(float)
    start = time.process_time()
    theirs = [_measures(layer, below) for layer, below in zip(found, [None, *found], strict=False)]
    seconds += time.process_time() - start
    worst = max(
        float(np.abs(found[:, word] - _mean(states[sentence], data, word)).max())
        for word, sentence in enumerate(data.sentence.tolist())
        if sentence in states
    )
    apart, which = max((abs(theirs[layer][name] / value - 1), name) for (name, layer), value in measured.items())
    print(f"geometry: {data.summary['note']}, {len(found)} layers")
    _print(ours, seconds, f"{len(chosen)} sentences")
    print(f"largest difference of a state {worst:.1e}, of a measure {apart:.1e} (relative, {which})")
    return int(worst > ROUNDING or apart > ROUNDING)


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
    distances = np.stack([np.linalg.norm(states - one, axis=1) for one in states])
    distinct = ~np.tril(distances <= 1e-6 * np.linalg.norm(states, axis=1).max(), -1).any(axis=1)
    nearest = np.sort(distances[distinct][:, distinct], axis=1)[:, 1:3]
    kept = int(0.9 * len(nearest))
    x = np.sort(np.log(nearest[:, 1] / nearest[:, 0]))[:kept]
    y = -np.log(1 - np.arange(1, kept + 1) / len(nearest))
    found = {
        "rank_me": np.exp(-(p * np.log(p)).sum()),
        "participation": spectrum.sum() ** 2 / (spectrum**2).sum(),
        "anisotropy": ((units @ units.T).sum() - n) / (n * (n - 1)),
        "dimension": x @ y / (x @ x),
    }
    if len(fitted := spectrum[10:100]) == len(ranks):
        found["alpha"] = -np.polyfit(np.log(ranks), np.log(np.maximum(fitted, 1e-300)), 1, w=ranks**-0.5)[0]
    if below is not None:
        found["cka_below"] = _hsic(states, below) / np.sqrt(_hsic(states, states) * _hsic(below, below))
    return {name: float(value) for name, value in found.items()}


def _hsic(first: np.ndarray, second: np.ndarray) -> float:
    """Return the unbiased HSIC of two sets of states (Song et al., 2012, equation 3)."""
    n = len(first)
    k, m = (one @ one.T for one in (first - first.mean(axis=0), second - second.mean(axis=0)))
    np.fill_diagonal(k, 0)
    np.fill_diagonal(m, 0)
    whole = k.sum() * m.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k @ m).sum()
    return float((np.trace(k @ m) + whole) / (n * (n - 3)))


def _print(ours: float, loop: float, of: str) -> None:
    print(f"ours {ours:.1f} CPU s, the loop {loop:.1f} CPU s (from {of}), ratio {loop / ours:.1f}")


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
