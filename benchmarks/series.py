"""Time adding, asking, evaluating and auditing a series of 154 checkpoints of Pythia-160m's size.

    python benchmarks/series.py [--folder FOLDER] [--steps N]

Four models with random weights in float16 are written to a folder (1.3 GB, by default a temporary one); the checkpoints
are links to them, in plain folders and as a cache of the Hub. Each part runs in a separate process, which has its own
peak memory. Seconds are CPU seconds unless marked as wall time. A question is compared with the time of its
multiplications as a plain matrix product, and with transformers reading the text once. Random models never agree, so a
continuation needs a pass for each of its pieces: no real series is as slow.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

from embryo_core import query, results, runs
from embryo_core.audit import audit
from embryo_core.engine.device import parallel_passes
from embryo_core.query.asking import log_spaced

TEXT = "a king born"  # 11 bytes, and so 11 pieces: about as long as a sentence of eleven words
STEPS = (0, *(2**k for k in range(10)), *range(1000, 144_000, 1000))  # Pythia's steps
ASKED_STEPS = 32  # checkpoints of a question
METRIC = "next_word_prediction"
SENTENCE_COUNT = 4  # sentences of the sample treebank, evaluated at every step
MODEL_COUNT = 4  # different models, to which the checkpoints are links in turn
PIECE_COUNT, ROW_COUNT = 50_254, 50_304  # pieces of Pythia's vocabulary, and rows of its embedding matrix
SIZES: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}
PARTS = ("add", "add_cached", "ask", "plain", "evaluate", "check", "check_shards")


def main() -> None:
    """Write the series if the folder lacks it, and run each part in a new process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the series is, or is to be written")
    parser.add_argument("--steps", type=int, default=len(STEPS), help="checkpoints of the series")
    parser.add_argument("--part", choices=PARTS, help="run this part alone, on a series that was written")
    options = parser.parse_args()
    if options.part:
        globals()[options.part](options.folder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if not (folder / "series").is_dir():
            write_series(folder, STEPS[: options.steps])
        for part in PARTS:
            subprocess.run(
                [sys.executable, __file__, "--folder", folder, "--part", part], check=True, env=_settings(folder)
            )


def _settings(folder: Path) -> dict[str, str]:
    """Return the environment with data, settings and the cache of the Hub in `folder`, and the Hub offline."""
    folders = {"EMBRYO_DATA": folder / "data", "XDG_CONFIG_HOME": folder / "settings", "HF_HUB_CACHE": folder / "hub"}
    return os.environ | {name: str(path) for name, path in folders.items()} | {"HF_HUB_OFFLINE": "1"}


# === The series ===


def write_series(folder: Path, steps: tuple[int, ...]) -> None:
    """Write the models, checkpoint folders with links to them, a cache of the Hub, and checkpoints in shards."""
    config = GPTNeoXConfig(vocab_size=ROW_COUNT, max_position_embeddings=2048, **SIZES)
    home = folder / "hub" / "models--owner--series"
    for part in ("blobs", "refs"):
        (home / part).mkdir(parents=True)
    for seed in range(MODEL_COUNT):
        torch.manual_seed(seed)
        model = GPTNeoXForCausalLM(config).half()
        model.save_pretrained(folder / "models" / str(seed))
        write_tokenizer(folder / "models" / str(seed))
        if seed < 3:
            model.save_pretrained(folder / "shards" / f"step{seed}", max_shard_size="40MB")
            write_tokenizer(folder / "shards" / f"step{seed}")
    hashes = [runs.sha256(folder / "models" / str(seed) / "model.safetensors") for seed in range(MODEL_COUNT)]
    for i, step in enumerate(steps):
        source, commit = folder / "models" / str(i % MODEL_COUNT), f"{i:040x}"
        os.link(source / "model.safetensors", home / "blobs" / hashes[i]) if i < MODEL_COUNT else None
        for target in (folder / "series" / f"step{step}", home / "snapshots" / commit):
            target.mkdir(parents=True)
            for file in source.iterdir():
                if file.name != "model.safetensors":
                    os.link(file, target / file.name)
        os.link(source / "model.safetensors", folder / "series" / f"step{step}" / "model.safetensors")
        blob = home / "snapshots" / commit / "model.safetensors"
        blob.symlink_to(f"../../blobs/{hashes[i % MODEL_COUNT]}")
        (home / "refs" / f"step{step}").write_text(commit)
    (home / "refs" / "main").write_text(commit)


def write_tokenizer(folder: Path) -> None:
    """Write a byte-level tokenizer with Pythia's number of pieces."""
    pieces = ["<|endoftext|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    pieces += [f"piece{i}" for i in range(PIECE_COUNT - len(pieces))]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=pieces[0]).save_pretrained(folder)


# === Parts ===


def add_cached(folder: Path) -> None:
    """Add the series from the cache of the Hub, whose files are named after their hashes."""
    _add_and_time("added from a cache of the Hub", "hf:owner/series", "cached")


def add(folder: Path) -> None:
    """Add the series from plain folders, whose weights are hashed."""
    _add_and_time("added from folders", str(folder / "series"), "series")


def _add_and_time(label: str, source: str, name: str) -> None:
    """Add a source as a run and print the seconds."""
    from embryo_core.sources.add import add as add_source

    wall, start = time.perf_counter(), time.process_time()
    run = add_source([source], name).run
    count = len(runs.checkpoints(run))
    _print(f"{count} steps {label}", time.process_time() - start, f"{time.perf_counter() - wall:.0f} s wall")


def ask(folder: Path) -> None:
    """Ask log-spaced steps, cold and warm, and print the share of the time that multiplications need at least."""
    run = runs.open_run("series")
    steps = log_spaced(tuple(checkpoint.step for checkpoint in runs.checkpoints(run)), ASKED_STEPS)
    for label in ("first", "warm"):
        wall, start = time.perf_counter(), time.process_time()
        query.ask(run, TEXT, steps)
        seconds = time.process_time() - start
        text = f"{time.perf_counter() - wall:.1f} s wall, {parallel_passes()} cores"
        _print(f"question to {len(steps)} steps, {label}", seconds, text)
    # positions and predictions of a pass over the text, and of five passes that continue it by a piece each
    position_count, prediction_count = len(TEXT) + 5, 6
    hidden, layers = SIZES["hidden_size"], SIZES["num_hidden_layers"]
    operations = (24 * hidden**2 * layers * position_count + 2 * hidden * PIECE_COUNT * prediction_count) * len(steps)
    minimum = operations / _operations_a_second()
    print(
        f"  its multiplications alone take {minimum:.1f} s as a plain product: {minimum / seconds:.0%} of it",
        flush=True,
    )


def plain(folder: Path) -> None:
    """Load one checkpoint with transformers and read a text of the same length once, in float32."""
    path = folder / "models" / "0"
    ids = torch.arange(len(TEXT))[None] + 1
    for _ in range(2):
        start = time.process_time()
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        load_end = time.process_time()
        with torch.inference_mode():
            model(ids)
        text = f"{time.process_time() - load_end:.2f} s of it for one pass"
    _print("transformers loads one step and reads once", time.process_time() - start, text)


def evaluate(folder: Path) -> None:
    """Evaluate every step on a few sentences with `evaluate`, killed after a third of the steps and started again."""
    run = runs.open_run("series")
    treebank = ["--treebank", "data/sample/treebank.conllu", "--limit", str(SENTENCE_COUNT)]
    command = [sys.executable, "-m", "embryo_core", "evaluate", run.name, "--metrics", METRIC, *treebank]
    wall, first = time.perf_counter(), subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while first.poll() is None and len(results.steps_by_metric(run)[METRIC]) < len(runs.checkpoints(run)) // 3:
        time.sleep(1)
    first.kill()
    first.wait()
    kept_count = len(results.steps_by_metric(run)[METRIC])
    subprocess.run(command, check=True, capture_output=True)
    text = f"killed after {kept_count} and started again, {time.perf_counter() - wall:.0f} s wall"
    usage = getrusage(RUSAGE_CHILDREN)
    print(
        f"{len(results.steps_by_metric(run)[METRIC])} steps evaluated on {SENTENCE_COUNT} sentences, {text}", flush=True
    )
    print(f"  {usage.ru_utime + usage.ru_stime:.0f} s, peak {usage.ru_maxrss / 1024:,.0f} MB", flush=True)


def check(folder: Path) -> None:
    """Audit three checkpoints of one file each."""
    _audit_and_time("audited", [str(folder / "series")], "whole")


def check_shards(folder: Path) -> None:
    """Audit three checkpoints in shards."""
    largest = max(file.stat().st_size for file in (folder / "shards").rglob("*.safetensors"))
    _audit_and_time(f"audited in shards of up to {largest / 1e6:.0f} MB", [str(folder / "shards")], "sharded")


def _audit_and_time(label: str, source: list[str], name: str) -> None:
    """Add three steps of a source as a run, audit it and print the seconds."""
    from embryo_core.sources.add import add as add_source

    run = add_source(source, name, steps=(0, 1, 2)).run
    memory_before, start = _peak_mb(), time.process_time()
    audit(run)
    _print(f"3 steps {label}", time.process_time() - start, f"{memory_before:,.0f} MB before")


# === Measures ===


def _operations_a_second() -> float:
    """Return the operations per second of a plain matrix product on one core."""
    torch.set_num_threads(1)
    numbers = torch.ones(1024, 1024)
    seconds = []
    for _ in range(10):
        start = time.process_time()
        numbers @ numbers
        seconds.append(time.process_time() - start)
    return 2 * 1024**3 / min(seconds)


def _peak_mb() -> float:
    """Return the peak memory of this process in MiB; `getrusage` may return its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _print(label: str, seconds: float, remark: str) -> None:
    print(f"{label:48} {seconds:7.1f} s, {remark}, peak {_peak_mb():,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
