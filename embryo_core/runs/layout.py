"""Layout of runs on disk: where they are, which can be read, and run.json; imports nothing heavy.

    <root>/runs/<run>/run.json, log.jsonl, frequencies.tsv, tokenizer/, checkpoints/step{N}/manifest.json, state/
    <root>/results/<run>/

A root is `data/` or `data/demo/`, or the folders named in the environment variable EMBRYO_DATA (see `roots`).
"""

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from msgspec.structs import astuple

from embryo_core.errors import BrokenRun, UnknownRun, unknown
from embryo_core.runs.files import UNFINISHED, write_json
from embryo_core.runs.reading import read_json, refusal
from embryo_core.runs.schema import OriginCard, RunCard
from embryo_core.types import Change, Origin, Run, SpecialTokens

REPOSITORY = Path(__file__).resolve().parents[2]
RUN_FIELDS = "name family objective config tokenizer_sha256 corpus planned_steps code_version note".split()


def roots() -> list[Path]:
    """Folders with `runs/` and `results/`: those in EMBRYO_DATA (separated like PATH), else data/ and data/demo/.

    These two are the repository's, or, where Embryo is installed elsewhere, those of the working directory.
    """
    named = os.environ.get("EMBRYO_DATA")
    if named:
        return [Path(part).expanduser().resolve() for part in named.split(os.pathsep) if part]
    beside = REPOSITORY if (REPOSITORY / "pyproject.toml").exists() else Path.cwd()
    return [beside / "data", beside / "data" / "demo"]


def data_folder(name: str) -> Path:
    """Where data of a kind are kept, "corpora" or "cache": beside the runs that are made here, in the first root."""
    return roots()[0] / name


def list_runs() -> list[Run]:
    """Every readable run under the roots, by name, once however many links lead to it; see `broken_runs`."""
    return list({run.path: run for _, run in _scan() if isinstance(run, Run)}.values())


def broken_runs() -> list[tuple[Path, str]]:
    """Folders under the roots that hold a run.json which cannot be read as a run, each with the reason."""
    return [(path, str(run)) for path, run in _scan() if isinstance(run, BrokenRun)]


def open_run(name: str | Path) -> Run:
    """The run of that name under the roots, or in the folder of that path. Raises UnknownRun, BrokenRun."""
    for folder in (Path(name), *(root / "runs" / str(name) for root in roots())):
        if os.path.lexists(folder / "run.json"):
            return read_run(folder)
    known = [run.name for run in list_runs()]
    raise UnknownRun(unknown("run", str(name), known, "List them with: python -m embryo_core runs"))


def read_run(path: Path) -> Run:
    """The run in this folder, which may be a link. Raises BrokenRun where its name or run.json is not that of a run."""
    path = Path(os.path.realpath(path))
    if not path.name.isprintable():
        raise refusal(path, "has a name that cannot be shown; rename it", BrokenRun)
    card = read_json(path / "run.json", path, RunCard, BrokenRun)
    return Run(
        path.name,
        path,
        card.family,
        card.objective,
        card.config,
        card.tokenizer_sha256,
        card.corpus,
        tuple(card.planned_steps),
        card.code_version,
        card.note,
        _origin(card.origin),
        SpecialTokens(*astuple(card.special_tokens)) if card.special_tokens else None,
        card.counted_in,
    )


def write_run(run: Run) -> None:
    """Write run.json (the folder is made)."""
    parts = {name: asdict(part) for name in ("origin", "special_tokens") if (part := getattr(run, name))}
    counted = {"counted_in": run.step_unit} if run.step_unit != Run.step_unit else {}
    write_json(run.path / "run.json", {name: getattr(run, name) for name in RUN_FIELDS} | parts | counted)


def _origin(card: OriginCard | None) -> Origin | None:
    if card is None:
        return None
    changes = tuple(Change(change.step, change.what) for change in card.changes)
    return Origin(
        card.run, card.step, card.sequences, card.tokens, card.weights_sha256, changes, card.text_tokens
    )


def _scan() -> Iterator[tuple[Path, Run | BrokenRun]]:
    """Every folder under the roots that holds a run.json of any kind, by name, with its run or why it is none.

    One that is being written, or was left half written, is no run yet.
    """
    for root in roots():
        try:
            names = sorted(name for name in os.listdir(root / "runs") if not name.endswith(UNFINISHED))
        except OSError:
            continue
        for path in (root / "runs" / name for name in names):
            try:
                os.lstat(path / "run.json")
                yield path, read_run(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as reason:  # a folder that may not be entered, a link in a circle
                yield path, refusal(path, f"cannot be read: {reason.strerror}", BrokenRun)
            except BrokenRun as error:
                yield path, error
