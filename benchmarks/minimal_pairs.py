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

ROUNDING = 1e-4  # nats: decisions between scores nearer to each other may differ by rounding


class Loop:
    """A checkpoint loaded by transformers, which scores one sentence at a time."""

    def __init__(self, model: Model):
        special = model.checkpoint.run.special_tokens
        self.masked = "masked_words" in model.capabilities
        kind = AutoModelForPreTraining if self.masked else AutoModelForCausalLM
        self.network = kind.from_pretrained(model.checkpoint.path, dtype=torch.float32).eval()
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(model.checkpoint.run.tokenizer / "tokenizer.json"))
        names = (special.cls, special.sep, special.mask) if special else ("[CLS]", "[SEP]", "[MASK]")
        self.first, self.last, self.mask = (self.tokenizer.convert_tokens_to_ids(n) if n else None for n in names)

    @torch.inference_mode()
    def score(self, sentence: str, at_once: int = 512) -> float:
        """Return the PLL-word-l2r of a sentence or, of a decoder, its log probability, in nats.

        `at_once` masked copies are read in one pass.
        """
        found = self.tokenizer(sentence, add_special_tokens=False)
        begin = [] if self.first is None else [self.first]
        ids = torch.tensor([*begin, *found.input_ids, *([] if self.last is None else [self.last])])
        at = torch.arange(len(found.input_ids)) + len(begin)
        if not self.masked:
            at = at[at > 0]
            logits = self.network(ids[None]).logits[0, at - 1]
        else:
            words = torch.tensor(found.word_ids())
            places = torch.arange(len(words))
            hidden = (words == words[:, None]) & (places >= places[:, None])  # [P, P]: a piece and the rest of its word
            copies = ids.repeat(len(words), 1)
            copies[:, at] = torch.where(hidden, self.mask, copies[:, at])
            outputs = [self.network(part) for part in copies.split(at_once)]
            all_logits = torch.cat([one.logits if "logits" in one else one.prediction_logits for one in outputs])
            logits = all_logits[torch.arange(len(at)), at]
        return torch.log_softmax(logits.double(), -1)[torch.arange(len(at)), ids[at]].sum().item()


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
    ours = metric.compute(model, data).pairs
    our_seconds = time.process_time() - start
    texts = {(pair.paradigm, pair.number): (pair.good, pair.bad) for pair in read_pairs(options.pairs)}
    chosen = [ours[i] for i in np.linspace(0, len(ours) - 1, min(options.loop, len(ours))).astype(int)]
    torch.set_num_threads(parallel_passes())
    print(f"{run.name}, step {checkpoint.step}: {data.summary['note']}; {parallel_passes()} cores")
    print(f"ours {our_seconds:.1f} CPU s")
    for how, at_once in {"masked copies one by one": 1, "those of a sentence as one batch": 512}.items():
        start = time.process_time()
        theirs = [[loop.score(text, at_once) for text in texts[one.paradigm, one.pair]] for one in chosen]
        seconds = (time.process_time() - start) * len(ours) / len(chosen)
        print(f"the loop, {how}: {seconds:.1f} CPU s ({len(chosen)} pairs, scaled), ratio {seconds / our_seconds:.1f}")
    return _compare(chosen, np.array(theirs))


def _compare(ours: list[PairScore], theirs: np.ndarray) -> int:
    """Print the differences of scores and decisions; return 1 if a decision differs that was not a near tie."""
    scores = np.array([(one.good, one.bad) for one in ours])
    near = np.abs(theirs[:, 0] - theirs[:, 1]) < ROUNDING
    differ = (np.sign(scores[:, 0] - scores[:, 1]) != np.sign(theirs[:, 0] - theirs[:, 1])) & ~near
    print(f"largest difference of a score {np.abs(scores - theirs).max():.1e} nats; ", end="")
    print(f"{differ.sum()} of {len(ours)} decisions differ, {near.sum()} are nearer to a tie than {ROUNDING:g}")
    return int(differ.any())


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
