"""Compare recipes: short runs that differ in a setting or in the family, on equal tokens of one text.

    python -m benchmarks.recipes --corpus FOLDER ... --heldout FILE --runs FOLDER [--steps 8000] [VARIANT ...]

Each variant and seed is a run in `--runs`, which is resumed if it was stopped. Without a name, all variants are trained
that do not continue another one. "small-then-books" continues "small", the run in `--init-from`, on other text, given
as `--corpus`; "small-then-books-own-words" does the same with 1,000 more pieces for words of that text. All runs are
measured on the same held-out text with 15 % of single pieces masked, whatever their training masks. Runs with the same
sentence loss have the same masks, because the random draws for that loss precede the draws for masks. The table has,
for each run, the tokens seen until the held-out loss reaches `--until`, and the last loss and accuracy.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from embryo_core import runs
from embryo_core.types import Run

MASKING = "single pieces 15 %"  # name in the log of the masking by which all variants are compared
SIZE_SETTINGS = (  # settings of every variant
    "hidden_size=128 num_attention_heads=4 intermediate_size=512 num_hidden_layers=4 sequence_length=64 batch_size=32 "
    "short_steps=0 warmup_steps=300 constant_steps={steps} save_every=0 save_per_doubling=2 state_every=500"
)
ALBERT = "embedding_size=64"
POSITIONS = "position_initializer_range=0.06 decay_positions=false"
WORDS = f"{POSITIONS} single_word_steps=2000 masked_share=0.2"
OTHER_FAMILIES = (  # settings in which presets of other families would otherwise differ from the ALBERT variants
    f"{POSITIONS} vocab_size=8000 max_position_embeddings=128 masked_share=0.3 whole_words=true max_ngram=3 "
    "optimizer=lamb learning_rate=0.006 hidden_dropout_prob=0 attention_probs_dropout_prob=0 checkpoint_dtype=float16"
)
ADAMW = f"{ALBERT} {POSITIONS} beta_2=0.98 optimizer=adamw learning_rate=0.001"
MUON = f"{ALBERT} {POSITIONS} beta_2=0.98 optimizer=muon learning_rate=0.002"
WIDE_POSITIONS = f"{MUON} position_initializer_range=0.2"  # the best of the ranges tried
SMALL = f"{WIDE_POSITIONS} hidden_act=gelu"  # the same result as WIDE_POSITIONS in a tenth less time
CONTINUED = "small-then-books"  # "small" continued on other text
VARIANTS = {  # variant -> preset, settings; an ALBERT changes the variant whose settings come first
    "base": ("albert-small", ALBERT),
    "positions": ("albert-small", f"{ALBERT} {POSITIONS}"),
    "words": ("albert-small", f"{ALBERT} {WORDS}"),
    "order-later": ("albert-small", f"{ALBERT} {WORDS} sentence_order_from=3000 sentence_order_weight=0.5"),
    "rate": ("albert-small", f"{ALBERT} {POSITIONS} learning_rate=0.002"),
    "beta2": ("albert-small", f"{ALBERT} {POSITIONS} beta_2=0.98 weight_decay=0.1"),
    "adamw": ("albert-small", ADAMW),
    "adamw-fast": ("albert-small", f"{ADAMW} learning_rate=0.002"),
    "muon": ("albert-small", f"{MUON} learning_rate=0.001"),
    "muon-fast": ("albert-small", MUON),
    "muon-faster": ("albert-small", f"{MUON} learning_rate=0.004"),
    "muon-far": ("albert-small", WIDE_POSITIONS),
    "muon-farther": ("albert-small", f"{MUON} position_initializer_range=0.5"),
    "bfloat16": ("albert-small", f"{ALBERT} {POSITIONS} compute_dtype=bfloat16"),  # for KERAS_BACKEND=torch
    "bert": ("bert-small", OTHER_FAMILIES),
    "electra": ("electra-small", f"{OTHER_FAMILIES} embedding_size=64 generator_size=0.5"),
    # Design choices: one change each to "small". With --steps 12288 they read 25 M tokens.
    "small": ("albert-small", SMALL),
    "small-unshared": ("albert-small", f"{SMALL} share=none"),
    "small-shared-attention": ("albert-small", f"{SMALL} share=attention"),
    "small-no-sentence-loss": ("albert-small", f"{SMALL} sentence_loss=none"),
    "small-next-sentence": ("albert-small", f"{SMALL} sentence_loss=nsp"),
    "small-embedding-256": ("albert-small", f"{SMALL} embedding_size=256"),
    "small-dropout": ("albert-small", f"{SMALL} hidden_dropout_prob=0.1 attention_probs_dropout_prob=0.1"),
    CONTINUED: ("albert-small", SMALL),
    f"{CONTINUED}-own-words": ("albert-small", f"{SMALL} extend_vocabulary=1000"),
}


def main() -> None:
    """Train the variants that are not yet trained, and print the table of all trained ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=f"of {', '.join(VARIANTS)}; default: all")
    parser.add_argument("--corpus", nargs="+", required=True)
    parser.add_argument("--heldout", nargs="+", required=True)
    parser.add_argument("--runs", type=Path, default=runs.REPOSITORY / "data" / "runs" / "recipes")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=12345)
    parser.add_argument("--init-from", metavar="RUN", help="a trained variant to continue from its last checkpoint")
    parser.add_argument("--until", type=float, default=5.7, help="held-out loss in nats (default 5.7)")
    options = parser.parse_args()
    for name in options.variants or [name for name in VARIANTS if not name.startswith(CONTINUED)]:
        if name not in VARIANTS:
            parser.error(f"unknown variant '{name}'; known: {', '.join(VARIANTS)}")
        train(name, options)
    for row in table(options.runs, options.until):
        print(row)


def train(name: str, options: argparse.Namespace) -> None:
    """Pretrain one variant in a separate process, or resume it."""
    preset, variant_settings = VARIANTS[name]
    start = ["--init-from", str(options.runs / options.init_from)] if options.init_from else []
    settings = f"{SIZE_SETTINGS.format(steps=options.steps)} {variant_settings} seed={options.seed}".split()
    folder = options.runs / f"{name}-seed{options.seed}"
    command = [sys.executable, "-m", "pretrain", preset, "--steps", str(options.steps), "--run", str(folder), *start]
    command += ["--corpus", *options.corpus, "--heldout", *options.heldout, "--set", *settings]
    subprocess.run(command, cwd=runs.REPOSITORY, check=True)


def table(folder: Path, target_loss: float) -> list[str]:
    """Return the lines of a Markdown table with one row per run, sorted by name."""
    rows = [
        f"| variant | tokens until {target_loss} | loss | accuracy | n | other objective | steps |",
        "|---|---|---|---|---|---|---|",
    ]
    for path in sorted(folder.glob("*/run.json")):
        run = runs.read_run(path.parent)
        if measures := heldout(run):
            _, _, last = measures[-1]
            tokens_needed = next(
                (f"{tokens / 1e6:.1f} M" for _, tokens, measure in measures if measure["loss"] <= target_loss), "not"
            )
            other_objectives = [key.removesuffix("_accuracy") for key in last if key.endswith("_accuracy")]
            others = "; ".join(
                f"{name} {last[f'{name}_accuracy']:.3f} (n = {last[f'{name}_n']:,})" for name in other_objectives
            )
            cells = f"{last['loss']:.3f} | {last['accuracy']:.3f} | {last['n']:,} | {others} | {measures[-1][0]:,}"
            rows.append(f"| {run.name} | {tokens_needed} | {cells} |")
    return rows


def heldout(run: Run) -> list[tuple[int, int, dict[str, Any]]]:
    """Return (step, tokens, measure) of a run's checkpoints, for its shortest sequences with single pieces masked."""
    checkpoint_measures = []
    for row in runs.read_log(run):
        measures = [measure for measure in row.get("measures", []) if measure["masking"] == MASKING]
        if measures:
            checkpoint_measures.append(
                (row["step"], row["tokens"], min(measures, key=lambda measure: measure["length"]))
            )
    return checkpoint_measures


if __name__ == "__main__":
    main()
