"""Compare the costs of a run of a thousand checkpoints with the costs of the demo's run of twenty-six.

    python -m benchmarks.thousand [--steps N] [--only NAME ...]

The long run is made in a temporary folder: each step has the weights and the results of the demo's checkpoint at the
same share of the run; files are linked if possible. Each line is measured in a separate process, the demo and the long
run in turn; memory is the peak of the process.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

from embryo_core.types import Run

REPOSITORY = Path(__file__).resolve().parents[1]
DEMO = REPOSITORY / "data" / "demo"
PAGES = ("overview", "findings", "tokens", "attention", "probing", "knowledge", "finetuning", "compare", "query")
SECOND_TEXT = "She put the book [MASK] the table ."  # a later question in the same process
TEXT, TWO_MASKS = "It was written [MASK] him .", "The [MASK] of the [MASK] was built in 1920 ."


# === The long run ===


def build(root: Path, steps: int) -> str:
    """Make the run below `root`, with `steps` checkpoints and their results; return its name."""
    from embryo_core import results, runs

    demo = runs.read_run(min((DEMO / "runs").iterdir()))
    sources = runs.loadable_checkpoints(demo)
    last = sources[-1].step
    grid = np.unique(np.linspace(0, last, steps).round().astype(int)).tolist()
    of_step = {step: sources[i * len(sources) // len(grid)] for i, step in enumerate(grid)}
    name = f"{demo.name}-{len(grid)}"
    run = replace(demo, name=name, path=root / "runs" / name, planned_steps=tuple(grid))
    runs.write_run(run)
    for part in ("tokenizer", "frequencies.tsv", "log.jsonl"):
        (shutil.copytree if (demo.path / part).is_dir() else shutil.copy)(demo.path / part, run.path / part)
    for step, source in of_step.items():
        _link_checkpoint(source.path, run.path / "checkpoints" / f"step{step}", step)
    _spread_results(demo, run, {step: source.step for step, source in of_step.items()})
    results.compact(run)
    return name


def _link_checkpoint(source: Path, folder: Path, step: int) -> None:
    """Link a checkpoint's files into a folder, with a manifest for another step and its share of tokens."""
    folder.mkdir(parents=True)
    for file in source.iterdir():
        if file.name == "manifest.json":
            card = json.loads(file.read_text())
            scale = step / card["step"] if card["step"] else 0
            counts = {name: round(card[name] * scale) for name in ("sequences", "tokens")}
            (folder / file.name).write_text(json.dumps(card | {"step": step} | counts))
            continue
        try:
            os.link(file, folder / file.name)
        except OSError:
            shutil.copy(file, folder / file.name)


def _spread_results(demo: Run, run: Run, of_step: dict[int, int]) -> None:
    """Write the demo's tables, with each step's rows repeated at all steps that are copies of it."""
    from embryo_core.results.rows import read_table, sort_rows
    from embryo_core.results.tables import TABLES
    from embryo_core.results.write import replace_table

    run.results.mkdir(parents=True)
    for file in demo.results.glob("*.json"):
        shutil.copy(file, run.results)
    for table in TABLES:
        rows = read_table(demo, table)
        by_step = {step: rows.filter(pa.compute.field("step") == step) for step in set(of_step.values())}
        parts = [
            found.set_column(found.schema.get_field_index("step"), "step", pa.array(np.full(found.num_rows, step)))
            for step, source in of_step.items()
            if (found := by_step[source]).num_rows
        ]
        if parts:
            replace_table(run, table, [sort_rows(table, pa.concat_tables(parts).cast(table.schema))])


# === Measurements, each in a separate process ===


def page(root: Path, name: str, which: str) -> dict[str, float]:
    """Measure the core seconds of a page: "first" at the last step, and "again", the minimum over five other steps."""
    from streamlit import config
    from streamlit.components.v2 import manifest_scanner
    from streamlit.runtime.scriptrunner import script_runner
    from streamlit.testing.v1 import AppTest
    from streamlit.util import calc_hash

    manifest_scanner.scan_component_manifests()  # AppTest scans at each run; a server scans once
    found = manifest_scanner.scan_component_manifests()
    manifest_scanner.scan_component_manifests = lambda *_: found
    script_runner._clean_problem_modules = lambda: None
    config.set_option("runner.postScriptGC", False)
    from embryo_core import runs

    steps = [checkpoint.step for checkpoint in runs.checkpoints(runs.open_run(name))]
    seconds = []
    for step in (steps[-1], *(steps[len(steps) * ninths // 9] for ninths in (4, 6, 3, 7, 5))):
        app = AppTest.from_file(str(REPOSITORY / "app" / "main.py"), default_timeout=600)
        app.query_params.update({"run": name, "step": str(step)})
        app._page_hash = calc_hash("" if which == "overview" else which)
        start = process_time()
        app.run()
        seconds.append(process_time() - start)
        if app.exception:
            raise RuntimeError(app.exception[0].message)
    return {"first": seconds[0], "again": min(seconds[1:])}


def trace(root: Path, name: str, text: str) -> dict[str, float]:
    """Measure the seconds of a question to all checkpoints, with models on disk and in memory."""
    from embryo_core import query, runs

    run = runs.open_run(name)
    return _twice(lambda: query.ask(run, text))


def picture(root: Path, name: str, text: str) -> dict[str, float]:
    """Measure the seconds to the first figure of a question: the first question in a process, and a later one."""
    from embryo_core import query, runs

    run = runs.open_run(name)
    start = perf_counter()
    first = query.Refinement(run, text)
    first.ask(first.next_round())
    seconds = {"first": perf_counter() - start}
    while steps := first.next_round():
        first.ask(steps)
    start = perf_counter()
    second = query.Refinement(run, SECOND_TEXT)
    second.ask(second.next_round())
    return seconds | {"again": perf_counter() - start}


def lens(root: Path, name: str, text: str) -> dict[str, float]:
    """Measure the seconds of the lens over all checkpoints."""
    from embryo_core import query, runs

    run = runs.open_run(name)
    return _twice(lambda: query.ask_layers(run, text))


def nothing(root: Path, name: str, _: str) -> dict[str, float]:
    """Measure the seconds of an evaluation that has nothing to do."""
    from embryo_core import runs
    from embryo_core.evaluation import evaluate

    run = runs.open_run(name)
    return _twice(lambda: evaluate(run, {}, ["token_reconstruction", "world_knowledge", "attention"]))


def one_more(root: Path, name: str, metric: str) -> dict[str, float]:
    """Measure the seconds to write and compact a metric's findings at one more checkpoint; "again" is a mean of twenty.

    The mean includes the additions after which tables are rewritten.
    """
    from embryo_core import results, runs
    from embryo_core.measurements import ClozeAnswer, Findings, Score

    run = runs.open_run(name)
    rows = results.read_scores(run, metric)
    rows = rows[rows["step"] == rows["step"].max()]
    scores = [Score(metric, row.value, row.n, row.group) for row in rows.itertuples()]
    answers = results.read_cloze(run, step=int(rows["step"].max())) if metric == "world_knowledge" else rows[:0]
    cloze = [ClozeAnswer(*row) for row in answers.drop(columns="step").itertuples(index=False)] if len(answers) else []
    checkpoint = runs.checkpoints(run)[-1]

    def write(step: int) -> None:
        results.write(replace(checkpoint, step=step), metric, Findings(scores=scores, cloze=cloze))
        results.compact(run)

    seconds = []
    for later in range(1, 22):
        start = perf_counter()
        write(checkpoint.step + later)
        seconds.append(perf_counter() - start)
    return {"first": seconds[0], "again": sum(seconds[1:]) / 20}


def _twice(call: Callable[[], object]) -> dict[str, float]:
    """Return the seconds of a first call and of a second one."""
    seconds = {}
    for turn in ("first", "again"):
        start = perf_counter()
        call()
        seconds[turn] = perf_counter() - start
    return seconds


MEASUREMENTS: dict[str, tuple[Callable[[Path, str, str], dict[str, float]], str]] = {
    **{f"page {name}": (page, name) for name in PAGES},
    "question, first picture": (picture, TEXT),
    "trace, one mask": (trace, TEXT),
    "trace, two masks": (trace, TWO_MASKS),
    "lens": (lens, TEXT),
    "evaluate, nothing to do": (nothing, ""),
    "one more step of a metric": (one_more, "token_reconstruction"),
    "one more step of facts": (one_more, "world_knowledge"),
}


def peak_memory() -> float:
    """Return the peak memory of this process in MiB; `ru_maxrss` would include the parent that forked it."""
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(kilobytes) / 1024


def measure(root: Path, name: str, label: str) -> dict[str, float]:
    """Measure a line for one run in a new process; return "first" and "again" (seconds) and "MB" (peak memory)."""
    command = [sys.executable, "-m", "benchmarks.thousand", "--one", label, "--run", name]
    environment = os.environ | {"EMBRYO_DATA": str(root)}
    process = subprocess.run(command, check=False, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(f"{label} of {name} failed: {process.stderr[-2000:]}")
    return json.loads(process.stdout.splitlines()[-1])


def main() -> None:
    """Build the long run, measure each line for both runs in turn, and print them side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--one", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        call, argument = MEASUREMENTS[options.one]
        numbers = call(Path(os.environ["EMBRYO_DATA"]), options.run, argument)
        numbers["MB"] = peak_memory()
        print(json.dumps(numbers))
        return
    with tempfile.TemporaryDirectory() as folder:
        short_root, long_root = Path(folder, "short"), Path(folder, "long")
        shutil.copytree(DEMO, short_root)
        names = min((short_root / "runs").iterdir()).name, build(long_root, options.steps)
        print(f"{'':26} {'first, s':>24} {'again, s':>24} {'MB':>24}")
        for label in options.only:
            a, b = measure(short_root, names[0], label), measure(long_root, names[1], label)
            cells = (f"{a[key]:8.2f} {b[key]:8.2f} {b[key] / a[key]:6.1f}" for key in ("first", "again", "MB"))
            print(f"{label:26} {' '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
