"""The layout of runs on disk: find runs, and read and write run.json; imports nothing slow.

    <root>/runs/<run>/run.json, log.jsonl, frequencies.tsv, tokenizer/, checkpoints/step{N}/manifest.json, state/
    <root>/results/<run>/

A root is `data/` or `data/demo/`, or the folders named in the environment variable EMBRYO_DATA (see `roots`).
"""

import os
from dataclasses import asdict, replace
from pathlib import Path

from msgspec import convert

from embryo_core.errors import BrokenRun, UnknownRun, unknown
from embryo_core.runs.atomic_files import UNFINISHED, write_json
from embryo_core.runs.schema import CorpusCard, RunCard, Settings
from embryo_core.runs.snapshot import read_once
from embryo_core.runs.trust import read_json, refusal
from embryo_core.runs.trust_list import check_trusted
from embryo_core.types import Change, Origin, Run, SpecialTokens

REPOSITORY = Path(__file__).resolve().parents[2]
MAX_LABEL = 60  # characters of a source's name in labels
CARD_FIELDS = "family objective config tokenizer_sha256 corpus planned_steps code_version note".split()


def roots() -> list[Path]:
    """Return the folders with `runs/` and `results/`: those in EMBRYO_DATA, separated like PATH, or the defaults.

    The defaults are data/ and data/demo/ of the repository, or of the working directory if Embryo is installed without
    its repository.
    """
    named = os.environ.get("EMBRYO_DATA")
    if named:
        return [Path(part).expanduser().resolve() for part in named.split(os.pathsep) if part]
    folder = REPOSITORY if (REPOSITORY / "pyproject.toml").exists() else Path.cwd()
    return [folder / "data", folder / "data" / "demo"]


def data_folder(name: str) -> Path:
    """Return the folder for a kind of data ("corpora", "cache") in the first root, where new runs are written too."""
    return roots()[0] / name


def list_runs() -> list[Run]:
    """Return every readable run under the roots, sorted by name; a run with several links is listed once."""
    return list({run.path: run for _, run in _scan(tuple(roots())) if isinstance(run, Run)}.values())


def broken_runs() -> list[tuple[Path, str]]:
    """Return the folders under the roots whose run.json cannot be read as a run, each with the reason."""
    return [(path, str(run)) for path, run in _scan(tuple(roots())) if isinstance(run, BrokenRun)]


def open_run(name: str | Path) -> Run:
    """Return the run of that name under the roots, or in the folder of that path. Raises UnknownRun, BrokenRun."""
    return check_trusted(read_run(find_run(name)))


def find_run(name: str | Path) -> Path:
    """Return the folder of the run that `open_run` opens. Raises UnknownRun."""
    for folder in (Path(name), *(root / "runs" / str(name) for root in roots())):
        if os.path.lexists(folder / "run.json"):
            return folder
    if Path(name).is_dir():
        raise UnknownRun(
            f"The folder {name} is not a run: it has no run.json. List the runs with: python -m embryo_core runs"
        )
    names = [run.name for run in list_runs()]
    raise UnknownRun(unknown("run", str(name), names, "List them with: python -m embryo_core runs"))


def read_run(path: Path) -> Run:
    """Return the run in a folder, which may be a link. Raises BrokenRun unless its name and run.json are valid."""
    path = Path(os.path.realpath(path))
    if not path.name.isprintable():
        raise refusal(path, "has a name that cannot be shown; rename it", BrokenRun)
    card = read_json(path / "run.json", path, RunCard, BrokenRun)
    return Run(
        path.name,
        path,
        **{name: getattr(card, name) for name in CARD_FIELDS},
        origin=convert(card.origin, Origin | None, from_attributes=True),
        special_tokens=convert(card.special_tokens, SpecialTokens | None, from_attributes=True),
        step_unit=card.counted_in,
    )


def write_run(run: Run) -> None:
    """Write the run.json of a run, creating its folder if needed."""
    parts = {name: asdict(part) for name in ("origin", "special_tokens") if (part := getattr(run, name))}
    counted = {"counted_in": run.step_unit} if run.step_unit != Run.step_unit else {}
    write_json(run.path / "run.json", {name: getattr(run, name) for name in ("name", *CARD_FIELDS)} | parts | counted)


def record_counted_words(run: Run, count: int) -> Run:
    """Write to run.json the number of `counted_words` of a run, 0 if unknown; return the run with it."""
    corpus = {name: part for name, part in run.corpus.items() if name != "counted_words"}
    run = replace(run, corpus=corpus | ({"counted_words": count} if count else {}))
    write_run(run)
    return run


def changes(run: Run) -> tuple[Change, ...]:
    """Return the changes of text, sequence length and learning rate in a run and the runs that it continues."""
    settings = convert(run.config, Settings)
    first, earlier = (run.origin.step, run.origin.changes) if run.origin else (0, ())
    later_changes = []
    # unless the origin already describes the change at its step
    if run.origin and all(change.step != first for change in earlier):
        later_changes.append(Change(first, f"corpus: {_name_sources(run)}"))
    if 0 < settings.short_steps < settings.steps:
        later_changes.append(Change(first + settings.short_steps, f"sequences of {settings.sequence_length} tokens"))
    if 0 < settings.constant_steps < settings.steps:
        later_changes.append(Change(first + settings.constant_steps, "learning rate falls"))
    return (*earlier, *sorted(later_changes, key=lambda change: change.step))


def _name_sources(run: Run) -> str:
    """Return the name of the first source of a run's text, shortened for a label, and the number of further ones."""
    sources = convert(run.corpus, CorpusCard).sources
    names = [source if isinstance(source, str) else source.name for source in sources] or ["other text"]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return "".join(filter(str.isprintable, names[0]))[:MAX_LABEL] + more


@read_once
def _scan(folders: tuple[Path, ...]) -> list[tuple[Path, Run | BrokenRun]]:
    """Return the finished folders with a run.json, sorted by name, each with its run or the error in it."""
    listed: list[tuple[Path, Run | BrokenRun]] = []
    for root in folders:
        try:
            names = sorted(name for name in os.listdir(root / "runs") if not name.endswith(UNFINISHED))
        except OSError:
            continue
        for path in (root / "runs" / name for name in names):
            try:
                os.lstat(path / "run.json")
                listed.append((path, check_trusted(read_run(path))))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as reason:  # such as a folder without permission, or a circular link
                listed.append((path, refusal(path, reason, BrokenRun)))
            except BrokenRun as error:
                listed.append((path, error))
    return listed
