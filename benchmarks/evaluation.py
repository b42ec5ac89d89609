"""Evaluate one checkpoint by our metrics and by the paper's procedure, and print seconds, ratio and differing counts.

    python -m benchmarks.evaluation RUN --treebank PATH --lama PATH [--step N] [--every N]

Both evaluate every Nth sentence of the treebank that fits the model's positions and every Nth fact of each relation, so
the three parts have the proportions of a full evaluation; by default, N gives about 300 sentences. Each part runs by
both procedures in turn, so that other load on the machine affects both. Our time includes reading and encoding data.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import torch

from benchmarks.paper import PaperEvaluation
from embryo_core import corpora, metrics, runs
from embryo_core.engine.device import parallel_passes
from embryo_core.engine.model import Model, load
from embryo_core.measurements import Findings
from embryo_core.metric import Limits
from embryo_core.types import Example, Fact

PARTS = ("token_reconstruction", "mask_prediction", "world_knowledge")


def main() -> int:
    """Print a table of the three parts and their sum; return 1 if a count differs."""
    options = _options()
    run = runs.open_run(options.run)
    checkpoint = runs.loadable_checkpoints(run, None if options.step is None else [options.step])[-1]
    paper, model = PaperEvaluation(checkpoint.path, run.tokenizer), load(checkpoint)
    examples = corpora.read_treebank(options.treebank)
    stride = options.every or max(1, len(examples) // 300)
    examples = [example for example in examples[::stride] if _fits(example, model)]
    facts = _every_nth(corpora.read_lama(options.lama), stride)
    print(f"{run.name}, step {checkpoint.step}: {len(examples)} sentences, {len(facts)} facts, ", end="")
    print(f"{parallel_passes()} cores, torch {torch.__version__}")
    data = {"token_reconstruction": examples, "mask_prediction": examples, "world_knowledge": facts}
    our_total, paper_total, differing = 0.0, 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        paths = _write(Path(folder), examples, facts)
        for part in PARTS:
            start = time.perf_counter()
            ours = _compute(part, model, paths)
            middle = time.perf_counter()
            # the paper's procedure splits each matrix product among the cores; ours runs a batch on each core
            torch.set_num_threads(parallel_passes())
            theirs = getattr(paper, part)(data[part])
            torch.set_num_threads(1)
            our_seconds, paper_seconds = middle - start, time.perf_counter() - middle
            our_total, paper_total = our_total + our_seconds, paper_total + paper_seconds
            different = _differences(ours, theirs)
            differing += different
            _print(part, our_seconds, paper_seconds, f"{different} counts differ")
    _print("sum", our_total, paper_total, "all counts agree" if not differing else f"{differing} counts differ")
    return 1 if differing else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.evaluation")
    parser.add_argument("run")
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--lama", type=Path, required=True)
    parser.add_argument("--step", type=int, help="default: the last")
    parser.add_argument("--every", type=int, help="default: for about 300 sentences")
    return parser.parse_args()


def _fits(example: Example, model: Model) -> bool:
    """Return whether a sentence fits the model's positions; the paper's procedure cannot read longer ones."""
    return len(model.tokenizer.encode_words(example.words).ids) + 2 <= model.max_positions


def _every_nth(facts: list[Fact], stride: int) -> list[Fact]:
    """Return every Nth fact of each relation."""
    by_relation = defaultdict(list)
    for fact in facts:
        by_relation[fact.relation].append(fact)
    return [fact for group in by_relation.values() for fact in group[::stride]]


def _write(folder: Path, examples: list[Example], facts: list[Fact]) -> dict[str, Path]:
    """Write the chosen sentences and facts to files, from which our metrics read them; return {source: path}."""
    with (folder / "treebank.jsonl").open("w", encoding="utf-8") as file:
        for example in examples:
            targets = [{"span1": target.span1, "label": target.label} for target in example.targets]
            file.write(json.dumps({"text": " ".join(example.words), "targets": targets}) + "\n")
    (folder / "lama" / "TREx").mkdir(parents=True)
    templates = {fact.relation: fact.template for fact in facts}
    rows = [{"relation": relation, "template": template} for relation, template in templates.items()]
    (folder / "lama" / "relations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for relation in templates:
        rows = [
            {"uuid": fact.id, "sub_label": fact.subject, "obj_label": fact.object}
            for fact in facts
            if fact.relation == relation
        ]
        path = folder / "lama" / "TREx" / f"{relation}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"treebank": folder / "treebank.jsonl", "lama": folder / "lama"}


def _compute(part: str, model: Model, paths: dict[str, Path]) -> Findings:
    """Read the data of one part and compute its metric."""
    metric = metrics.get_metrics([part])[0]
    source = corpora.open_source(paths[metric.source])
    return metric.compute(model, metric.read(model.tokenizer, Limits.for_model(model), source))


def _differences(ours: Findings, theirs: Any) -> int:
    """Return the number of differing word counts, or of facts that only one of the two answers right (rank 1)."""
    if ours.cloze:
        is_right = {answer.fact: answer.rank == 1 for answer in ours.cloze}
        return len(is_right.keys() ^ theirs.keys()) + sum(
            is_right.get(fact) != (r[0] == 1) for fact, r in theirs.items()
        )
    counts: Counter = Counter()
    for row in ours.words:
        counts[row.tag, row.word, True] += row.correct
        counts[row.tag, row.word, False] += row.n - row.correct
    return sum(counts[key] != theirs[key] for key in counts.keys() | theirs.keys())


def _print(part: str, ours: float, theirs: float, remark: str) -> None:
    print(
        f"{part:22} ours {ours:8.2f} s   paper {theirs:8.2f} s   ratio {theirs / ours:5.1f}   {remark}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
