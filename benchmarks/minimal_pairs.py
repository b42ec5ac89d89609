"""Score minimal pairs by our metric and by a plain loop over transformers, and compare CPU time and decisions.

    python -m benchmarks.minimal_pairs RUN --pairs PATH [--step N] [--each N] [--loop N]

Ours scores the first --each pairs of every paradigm; the loop scores --loop pairs taken evenly from them, and its time
is scaled to all. The loop takes one sentence at a time, with transformers' tokenizer and model on all cores, like
published code: an encoder reads a sentence's masked copies as one batch or, in the plain form, one after the other; a
decoder reads the sentence. All run in turn. Seconds are CPU seconds of this process on all cores, so that other
programs do not count.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoModelForPreTraining, PreTrainedTokenizerFast

from embryo_core import corpora, runs
from embryo_core.corpora.minimal_pairs import read_pairs
from embryo_core.engine.device import parallel_passes
from embryo_core.engine.model import Model, load
from embryo_core.measurements import PairScore
from embryo_core.metric import Limits
from embryo_core.metrics.minimal_pairs import WORD_L2R, MinimalPairs

TOLERANCE = 1e-4  # nats: decisions between scores nearer to each other may differ by rounding


class Loop:
    """A checkpoint loaded by transformers, which scores one sentence at a time."""

    def __init__(self, model: Model):
        special = model.checkpoint.run.special_tokens
        self.masked = "masked_words" in model.capabilities
        model_class = AutoModelForPreTraining if self.masked else AutoModelForCausalLM
        self.network = model_class.from_pretrained(model.checkpoint.path, dtype=torch.float32).eval()
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(model.checkpoint.run.tokenizer / "tokenizer.json"))
        names = (special.cls, special.sep, special.mask) if special else ("[CLS]", "[SEP]", "[MASK]")
        self.first, self.last, self.mask = (self.tokenizer.convert_tokens_to_ids(n) if n else None for n in names)

    @torch.inference_mode()
    def score(self, sentence: str, at_once: int = 512) -> float:
        """Return the PLL-word-l2r of a sentence or, of a decoder, its log probability, in nats.

        `at_once` masked copies are read in one pass.
        """
        encoding = self.tokenizer(sentence, add_special_tokens=False)
        begin = [] if self.first is None else [self.first]
        ids = torch.tensor([*begin, *encoding.input_ids, *([] if self.last is None else [self.last])])
        columns = torch.arange(len(encoding.input_ids)) + len(begin)
        if not self.masked:
            columns = columns[columns > 0]
            logits = self.network(ids[None]).logits[0, columns - 1]
        else:
            words = torch.tensor(encoding.word_ids())
            indices = torch.arange(len(words))
            # [P, P]: a piece and the rest of its word
            is_masked = (words == words[:, None]) & (indices >= indices[:, None])
            copies = ids.repeat(len(words), 1)
            copies[:, columns] = torch.where(is_masked, self.mask, copies[:, columns])
            outputs = [self.network(part) for part in copies.split(at_once)]
            all_logits = torch.cat(
                [output.logits if "logits" in output else output.prediction_logits for output in outputs]
            )
            logits = all_logits[torch.arange(len(columns)), columns]
        return torch.log_softmax(logits.double(), -1)[torch.arange(len(columns)), ids[columns]].sum().item()


def main() -> int:
    """Print seconds, their ratio and the differences of scores; return 1 if a decision differs."""
    options = _options()
    run = runs.open_run(options.run)
    checkpoint = runs.loadable_checkpoints(run, None if options.step is None else [options.step])[-1]
    model = load(checkpoint)
    loop, metric = Loop(model), MinimalPairs()
    start = time.process_time()
    source = corpora.open_source(options.pairs, options.each, pll=WORD_L2R)
    data = metric.read(model.tokenizer, Limits.for_model(model), source)
    our_pairs = metric.compute(model, data).pairs
    our_seconds = time.process_time() - start
    texts = {(pair.paradigm, pair.number): (pair.good, pair.bad) for pair in read_pairs(options.pairs)}
    sample = [our_pairs[i] for i in np.linspace(0, len(our_pairs) - 1, min(options.loop, len(our_pairs))).astype(int)]
    torch.set_num_threads(parallel_passes())
    print(f"{run.name}, step {checkpoint.step}: {data.summary['note']}; {parallel_passes()} cores")
    print(f"ours {our_seconds:.1f} CPU s")
    for copies, at_once in {"masked copies one by one": 1, "those of a sentence as one batch": 512}.items():
        start = time.process_time()
        loop_scores = [[loop.score(text, at_once) for text in texts[pair.paradigm, pair.pair]] for pair in sample]
        seconds = (time.process_time() - start) * len(our_pairs) / len(sample)
        print(
            f"the loop, {copies}: {seconds:.1f} CPU s ({len(sample)} pairs, scaled), ratio {seconds / our_seconds:.1f}"
        )
    return _compare(sample, np.array(loop_scores))


def _compare(pairs: list[PairScore], loop_scores: np.ndarray) -> int:
    """Print the differences of scores and decisions; return 1 if a decision differs that was not a near tie."""
    our_scores = np.array([(pair.good, pair.bad) for pair in pairs])
    is_tie = np.abs(loop_scores[:, 0] - loop_scores[:, 1]) < TOLERANCE
    differs = (np.sign(our_scores[:, 0] - our_scores[:, 1]) != np.sign(loop_scores[:, 0] - loop_scores[:, 1])) & ~is_tie
    print(f"largest difference of a score {np.abs(our_scores - loop_scores).max():.1e} nats; ", end="")
    print(f"{differs.sum()} of {len(pairs)} decisions differ, {is_tie.sum()} are nearer to a tie than {TOLERANCE:g}")
    return int(differs.any())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.minimal_pairs")
    parser.add_argument("run")
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--step", type=int, help="default: the last")
    parser.add_argument("--each", type=int, default=100, help="pairs of each paradigm (default 100)")
    parser.add_argument("--loop", type=int, default=200, help="pairs that the loop scores (default 200)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
