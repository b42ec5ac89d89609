"""Time live queries against transformers' fill-mask pipeline over the same checkpoints, both warm, in one run.

    python benchmarks/query.py [--run NAME] [--repeats N]
    python benchmarks/query.py --sizes albert-base bert-base

Without --run, 24 checkpoints of an ALBERT with random weights, of the size of the preset albert-small, are written to a
temporary folder first. --sizes does the same for each of the given presets: all our checkpoints are in memory; the
pipelines, which would not also fit, are built one after the other, and their times are summed.

The pipelines are built before timing starts, in two dtypes: the dtype of the stored weights (here float16), which is
the default of transformers, and float32, in which they are faster and agree with our answers to 1e-5. Each number is
the median of the repeats. Ours and the pipelines take turns, each after a call that is not timed, so that the data are
in the CPU's caches; both use the same number of cores. EMBRYO_KERNELS=plain selects our plain path.
"""

import argparse
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from embryo_core import query, runs
from embryo_core.engine.cache import MODELS
from embryo_core.engine.device import parallel_passes
from embryo_core.engine.model import Model
from embryo_core.query.beam import search
from embryo_core.query.sweep import sweep
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Checkpoint, Run

TEXT = "the old king of the north was born in [MASK] ."  # 12 pieces with [CLS] and [SEP]
TWO_MASKS = "the old [MASK] of the north was born in [MASK] ."  # the same with two masks
STEPS = (0, *(2**k for k in range(10)), *range(1000, 14_000, 1000))  # 24 steps


def main() -> None:
    """Print one line per measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", help="a run to query instead of random weights")
    parser.add_argument("--sizes", nargs="+", metavar="PRESET", help="measure on random weights of these sizes")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    for name in options.sizes or ():
        with tempfile.TemporaryDirectory() as folder:
            measure_size(write_run(Path(folder) / "runs" / name, name), options.repeats)
    if options.sizes:
        return
    with tempfile.TemporaryDirectory() as folder:
        run = runs.open_run(options.run) if options.run else write_run(Path(folder) / "runs" / "random")
        measure(run, options.repeats)


def measure(run: Run, repeats: int) -> None:
    """Time the first question in new processes, then warm questions, each next to the pipelines."""
    checkpoints = runs.loadable_checkpoints(run)
    print(f"{len(checkpoints)} checkpoints, {parallel_passes()} cores, text of {len(TEXT.split())} words", flush=True)
    command = _fresh("-m", "embryo_core", "query", str(run.path), TEXT, "--step", "all")
    print(f"first trace, a new process as a whole   {command:8.0f} ms (python -m embryo_core query ... --step all)")
    print(f"  of that, importing torch alone takes  {_fresh('-c', 'import torch'):8.0f} ms", flush=True)
    models = [MODELS.get(checkpoint) for checkpoint in checkpoints]
    sides = [[_pipeline(checkpoint, dtype) for checkpoint in checkpoints] for dtype in ("auto", "float32")]
    _compare("one step", repeats, lambda: _answer(models[-1], TEXT), [side[-1:] for side in sides], TEXT)
    _compare("all steps", repeats, lambda: query.ask(run, TEXT), sides, TEXT)
    _compare("lens: all steps and layers", repeats, lambda: query.ask_layers(run, TEXT), sides, TEXT)
    # The pipeline answers each mask separately; ours answers them jointly, which is more work. A whole question also
    # scores, at all steps, every answer that ever led, which a pipeline does not.
    _compare("all steps, two masks", repeats, partial(_answer_jointly, run, TWO_MASKS), sides, TWO_MASKS)
    _compare("  and histories of leaders", repeats, lambda: query.ask(run, TWO_MASKS), sides, TWO_MASKS)
    word = query.read_question(TEXT, models[-1].tokenizer).track(_two_pieces(models[-1]))
    _compare("a word of two pieces", repeats, lambda: query.ask(run, word), sides, TWO_MASKS)


def measure_size(run: Run, repeats: int) -> None:
    """Time texts of one and two masks with every checkpoint in memory, then the pipelines one after the other."""
    os.environ["EMBRYO_MODEL_MEMORY"] = "12 GB"
    models = [MODELS.get(checkpoint) for checkpoint in runs.loadable_checkpoints(run)]
    megabytes = sum(model.nbytes for model in models) / 1e6
    print(f"{run.name}: {len(models)} checkpoints, {megabytes:,.0f} MB, {parallel_passes()} cores", flush=True)
    questions: dict[tuple[str, str], Callable[[], object]] = {
        ("all steps", TEXT): lambda: query.ask(run, TEXT),
        ("all steps, two masks", TWO_MASKS): partial(_answer_jointly, run, TWO_MASKS),
        ("  and histories of leaders", TWO_MASKS): lambda: query.ask(run, TWO_MASKS),
    }
    our_seconds = {label_and_text: _median(call, repeats) for label_and_text, call in questions.items()}
    torch.set_num_threads(parallel_passes())
    sums = {dtype: dict.fromkeys((TEXT, TWO_MASKS), 0.0) for dtype in ("auto", "float32")}
    for dtype, by_text in sums.items():
        for checkpoint in runs.loadable_checkpoints(run):
            ask = _pipeline(checkpoint, dtype)
            for text in by_text:
                by_text[text] += _median(partial(ask, text), repeats)
    torch.set_num_threads(1)
    for (label, text), seconds in our_seconds.items():
        _print(label, seconds, *(by_text[text] for by_text in sums.values()))


def _median(call: Callable[[], object], repeats: int) -> float:
    """Return the median seconds of a call, after one that is not timed."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def _print(label: str, our_seconds: float, stored_seconds: float, float32_seconds: float) -> None:
    """Print a line in ms: our time, and the pipelines' times in stored dtype and in float32, with ratios to ours."""
    pipelines = f"pipeline as stored {1e3 * stored_seconds:7.1f} ms ({stored_seconds / our_seconds:4.1f})"
    pipelines += f"   in float32 {1e3 * float32_seconds:7.1f} ms ({float32_seconds / our_seconds:4.1f})"
    print(f"{label:27} ours {1e3 * our_seconds:7.1f} ms   {pipelines}", flush=True)


def _compare(
    label: str, repeats: int, ours: Callable[[], object], sides: list[list[Callable[[str], object]]], text: str
) -> None:
    """Time ours and the pipelines in turn, and print medians; pipelines have a torch thread per core that ours uses."""
    calls = [
        (1, ours),
        *((parallel_passes(), lambda side=side: [ask(text) for ask in side]) for side in sides),
    ]
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for times, (threads, call) in zip(seconds, calls, strict=True):
            torch.set_num_threads(threads)
            call()
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    torch.set_num_threads(1)
    _print(label, *(statistics.median(times) for times in seconds))


def _answer(model: Model, text: str) -> list[str]:
    """Return the ten best pieces for the one [MASK] of a text."""
    (reply,) = search([model], query.read_question(text, model.tokenizer))
    return model.tokenizer.readable(reply.best(0, 10))


def _answer_jointly(run: Run, text: str) -> None:
    """Answer a text with several masks at every step, without histories of leaders."""
    checkpoints = runs.loadable_checkpoints(run)
    question = query.read_question(text, load_tokenizer(run))
    sweep(checkpoints, lambda models: search(models, question))


def _fresh(*arguments: str) -> float:
    """Return the milliseconds of a new Python process: the median of three, after one that warms the disk cache."""
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds[1:])


def _two_pieces(model: Model) -> str:
    """Return a word that the tokenizer splits into two pieces."""
    pieces = model.tokenizer.pieces(range(5, model.tokenizer.vocabulary_size))
    starts, inner_pieces = ([piece for piece in pieces if piece.startswith("▁") == start] for start in (True, False))
    words = (first.removeprefix("▁") + second for first in starts for second in inner_pieces)
    return next(word for word in words if len(model.tokenizer.encode_text(word)) == 4)


def _pipeline(checkpoint: Checkpoint, dtype: str) -> Callable[[str], object]:
    """Build a checkpoint's pipeline; the dtype "auto", transformers' default, keeps the dtype of the stored weights."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers.pipeline(
        "fill-mask",
        model=transformers.AutoModelForMaskedLM.from_pretrained(checkpoint.path, dtype=dtype),
        tokenizer=transformers.AutoTokenizer.from_pretrained(checkpoint.run.tokenizer),
    )


def write_run(path: Path, size: str = "albert-small") -> Run:
    """Write a run with random weights: 24 checkpoints of the size of this preset, stored as float16."""
    import transformers

    from pretrain.families import FAMILIES, preset
    from pretrain.tokenizer import train_tokenizer

    config = preset(size)
    architecture = FAMILIES[config.family].huggingface_config(config)
    transformers.utils.logging.disable_progress_bar()
    draw = random.Random(0)
    syllables = ["".join(pair) for pair in itertools.product("bdfgklmnprst", "aeiou")]
    words = ["".join(draw.choices(syllables, k=draw.randint(2, 4))) for _ in range(2 * config.vocab_size)]
    text = [" ".join(words)] * 5 + [TEXT.replace("[MASK]", "")] * 1_000
    train_tokenizer(text, config.vocab_size, path / "tokenizer", config.tokenizer)
    sha256 = runs.sha256(path / "tokenizer" / "tokenizer.json")
    run = Run(path.name, path, config.family, "random weights", {}, sha256, {}, STEPS, "benchmark")
    runs.write_run(run)
    network = getattr(transformers, architecture["architectures"][0])
    for step in STEPS:
        torch.manual_seed(step)
        folder = path / "checkpoints" / f"step{step}"
        network(network.config_class(**architecture)).half().save_pretrained(folder)
        runs.write_manifest(folder, step, sequences=0, tokens=0)
    return run


if __name__ == "__main__":
    main()
