"""Live queries against transformers' fill-mask pipeline over the same checkpoints, both warm, side by side in one run.

    python benchmarks/query.py [--run NAME] [--repeats N]

Without --run, 24 checkpoints of an ALBERT with random weights (hidden 192, 6 layers, 8,000 pieces) are written to a
temporary folder first. The pipelines are built before the clock starts. Each figure is the median of the repeats, ours
and the pipeline's taken in turns.
"""

import argparse
import itertools
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from embryo_core import query, runs
from embryo_core.model_cache import MODELS
from embryo_core.trace import trace
from embryo_core.types import Run

TEXT = "the old king of the north was born in [MASK] ."  # 12 pieces with [CLS] and [SEP]
TWO = "the old [MASK] of the north was born in [MASK] ."
STEPS = (0, *(2**k for k in range(10)), *range(1000, 14_000, 1000))


def main() -> None:
    """Print one line per figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", help="a run to query instead of random weights")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = runs.open_run(options.run) if options.run else write_run(Path(folder) / "runs" / "random")
        measure(run, options.repeats)


def measure(run: Run, repeats: int) -> None:
    """First queries in fresh processes, then warm queries beside the pipeline's."""
    checkpoints = runs.checkpoints(run)
    print(f"{len(checkpoints)} checkpoints, text of {len(TEXT.split())} words", flush=True)
    imports, first = _first_trace(run)
    print(
        f"first trace in a new process    {first:8.0f} ms, after {imports:.0f} ms of importing torch and transformers"
    )
    pipelines = _pipelines(run)
    models = [MODELS.get(checkpoint) for checkpoint in checkpoints]
    _compare("one step", repeats, lambda: query.fill_mask(models[-1], TEXT), lambda: pipelines[-1](TEXT))
    _compare("all steps", repeats, lambda: trace(run, TEXT), lambda: [ask(TEXT) for ask in pipelines])
    # The pipeline answers each mask on its own; ours answers them jointly, which is more work.
    _compare("all steps, two masks", repeats, lambda: trace(run, TWO), lambda: [ask(TWO) for ask in pipelines])


def _compare(what: str, repeats: int, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    times: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for call in (ours, theirs):
        call()
    for _ in range(repeats):
        for call, seconds in times.items():
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    mine, its = (1e3 * statistics.median(seconds) for seconds in times.values())
    print(f"{what:22} ours {mine:8.1f} ms   pipeline {its:8.1f} ms   ratio {its / mine:5.1f}", flush=True)


def _first_trace(run: Run) -> tuple[float, float]:
    """Milliseconds of the imports and of the first trace, in a process of its own."""
    code = (
        "import sys, time\n"
        "from embryo_core import runs\n"
        "start = time.perf_counter()\n"
        "import embryo_core.model\n"
        "imported = time.perf_counter()\n"
        "from embryo_core.trace import trace\n"
        "trace(runs.open_run(sys.argv[1]), sys.argv[2])\n"
        "print(imported - start, time.perf_counter() - imported)"
    )
    command = [sys.executable, "-c", code, str(run.path), TEXT]
    imports, first = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return 1e3 * float(imports), 1e3 * float(first)


def _pipelines(run: Run) -> list[Callable[[str], object]]:
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.tokenizer)
    return [
        transformers.pipeline(
            "fill-mask", model=transformers.AutoModelForMaskedLM.from_pretrained(c.path).float(), tokenizer=tokenizer
        )
        for c in runs.checkpoints(run)
    ]


def write_run(path: Path) -> Run:
    """A run with random weights: 24 checkpoints, hidden 192, 6 layers, 8,000 pieces, stored as float16."""
    import torch
    from transformers import AlbertConfig, AlbertForPreTraining
    from transformers.utils.logging import disable_progress_bar

    from pretrain.tokenizer import train_tokenizer

    disable_progress_bar()
    draw = random.Random(0)
    syllables = ["".join(pair) for pair in itertools.product("bdfgklmnprst", "aeiou")]
    words = ["".join(draw.choices(syllables, k=draw.randint(2, 4))) for _ in range(12_000)]
    train_tokenizer([" ".join(words)] * 5 + [TEXT.replace("[MASK]", "")] * 1_000, 8_000, path / "tokenizer")
    sha256 = runs.sha256(path / "tokenizer" / "tokenizer.json")
    run = Run(path.name, path, "albert", "random weights", {}, sha256, {}, STEPS, "benchmark")
    runs.write_run(run)
    sizes = {"hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 768}
    for step in STEPS:
        torch.manual_seed(step)
        network = AlbertForPreTraining(AlbertConfig(vocab_size=8_000, embedding_size=128, pad_token_id=0, **sizes))
        folder = path / "checkpoints" / f"step{step}"
        network.half().save_pretrained(folder)
        runs.write_manifest(folder, step, sequences=0, tokens=0)
    return run


if __name__ == "__main__":
    main()
