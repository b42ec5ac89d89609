"""Make a run from checkpoints that other code wrote: point to their folders, or copy them; the source is unchanged.

    <root>/runs/<name>/run.json, tokenizer/, log.jsonl
    <root>/runs/<name>/checkpoints/step{N}/config.json, manifest.json (which points to the weights)

The whole folder is written anew and then replaces an earlier run of that name, so repeating the command adds new
checkpoints (earlier.py decides what is kept). A checkpoint that is gone from the source keeps its results, but not its
weights.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from embryo_core import runs
from embryo_core.engine.capabilities import describe_capabilities
from embryo_core.errors import BrokenRun, RunError
from embryo_core.runs.pointers import HUB
from embryo_core.sources import earlier, folders, hub, trainer
from embryo_core.sources.patterns import Counts
from embryo_core.sources.source_series import SourceCheckpoint, SourceSeries, complete_grid
from embryo_core.sources.write import draft_run, write_checkpoints, write_tokenizer
from embryo_core.types import Run

LISTED_PATTERN = re.compile(r"(\d{1,18}):(.+)")  # STEP:PATH
NAME_PATTERN = re.compile(r"[\w.+-]{1,100}")


@dataclass(frozen=True)
class AddReport:
    """The outcome of `add`."""

    run: Run
    steps: tuple[int, ...]
    locations: tuple[str, ...]  # folders and "hf:" repositories of the weights
    kept: tuple[int, ...] = ()  # steps kept unchanged from an earlier run of that name
    gone: tuple[int, ...] = ()  # steps of the earlier run whose weights are gone
    unmatched: Sequence[str] = ()  # names in the source that end in a number but match no pattern
    troubles: list[str] = field(default_factory=list)  # one sentence for each skipped checkpoint
    notes: Sequence[str] = ()  # sentences on other content of the source
    remarks: tuple[str, ...] = ()  # sentences on how the checkpoints are read


def add(
    source: Sequence[str],
    name: str,
    steps: Iterable[int] | None = None,
    patterns: Sequence[str] = (),
    tokenizer: str | None = None,
    copy: bool = False,
    seed: int | None = None,
) -> AddReport:
    """Make the run `name` from a source: a folder, hf:OWNER/NAME, or several STEP:PATH.

    `patterns` describe the names of checkpoints (see patterns.py); `steps` selects some of them. `tokenizer` is the
    folder of the tokenizer used in pretraining, or hf:OWNER/NAME@REVISION, needed if the checkpoints have none. Without
    `seed`, the seed is read from the name of the source or of the run, or from config.json.

    Raises RunError for a source without checkpoints, if a run of that name was not made by `add`, if its results belong
    to other models, and while another process adds; RunError or MissingWeights if the Hub does not answer.
    """
    target = _target(name)
    series = _find(source, patterns)
    chosen = _chosen(series, steps)
    with _replacing(target) as (folder, old):
        added, troubles = write_checkpoints(chosen, folder, copy, name)
        troubles[:0] = series.incomplete.values() if steps is None else ()
        if not added:
            raise RunError(f"No checkpoint of {' '.join(source)} can be read: {troubles[0]}")
        run = draft_run(target.name, folder, added[-1], source, copy, seed)
        run, remark = write_tokenizer(run, added, tokenizer)
        earlier.refuse_other_models(old, run)
        kept, gone = earlier.keep_earlier_steps(old, run, earlier.sources_of(added) | runs.allowed_sources(target))
        written = tuple(checkpoint.step for checkpoint in added)
        planned = _planned_steps({*written, *kept, *gone}, old, series if steps is None else None, added[-1])
        runs.write_run(replace(run, planned_steps=planned))
        unread, odd = trainer.write_log(added, old, folder / "log.jsonl")
        runs.read_run(folder)  # an unreadable run must not replace an earlier one
        _record_sources(target, added, folder)
    run = runs.read_run(target)
    locations = tuple(sorted({runs.source_of(checkpoint.pointer) for checkpoint in added}))
    remarks = (*describe_capabilities(run), *filter(None, [remark, odd]))
    return AddReport(run, written, locations, kept, gone, series.unmatched, troubles + unread, series.notes, remarks)


def _planned_steps(
    present: set[int], old: Run | None, source: SourceSeries | None, last: SourceCheckpoint
) -> tuple[int, ...]:
    """Return the steps that training planned: those present, and those missing from the grid of the whole source.

    Without a source, if only some of its steps are added, the grid is that of the earlier run.
    """
    if source is None:
        return tuple(sorted({*present, *(old.planned_steps if old else ())}))
    return complete_grid(sorted({*present, *source.incomplete}), trainer.save_interval(last))


def _record_sources(target: Path, added: list[SourceCheckpoint], folder: Path) -> None:
    """Record the run with the sources that it may read; the pointers that are kept need no new permission.

    This precedes the run, so that it can be added again after a crash.
    """
    kept_sources = earlier.weight_sources(folder) & runs.allowed_sources(target)
    runs.record_added(target, earlier.sources_of(added) | kept_sources)


# === Finding ===


def _target(name: str) -> Path:
    """Return the folder of the run. Raises RunError for an invalid name, or if a run that was not added has it."""
    if not NAME_PATTERN.fullmatch(name):
        raise RunError(f"'{name}' is not a valid run name; use letters, digits and . _ + - (--name NAME).")
    target = runs.roots()[0] / "runs" / name
    if os.path.lexists(target) and not (runs.was_added(target) or earlier.points_elsewhere(target)):
        raise RunError(f"There is a run '{name}' in {target}, and it was not added; choose another --name.")
    for root in runs.roots()[1:]:
        if os.path.lexists(root / "runs" / name):
            raise RunError(f"There is a run '{name}' in {root / 'runs'}, which would be hidden; choose another --name.")
    return target


def _find(source: Sequence[str], patterns: Sequence[str]) -> SourceSeries:
    """Return the checkpoints of the source: listed as STEP:PATH, in a folder, or on the Hub. Raises RunError."""
    for one in source:
        runs.check_path(one)
    listed = [match for one in source if (match := LISTED_PATTERN.fullmatch(one))]
    if len(listed) == len(source):
        series = SourceSeries([])
        for step, place in (match.groups() for match in listed):
            counts = Counts(step=int(step))
            if place.startswith(HUB):
                series.found.append(hub.checkpoint_at(place.removeprefix(HUB), counts))
            else:
                series.found.append(folders.checkpoint_at(Path(place).expanduser(), counts))
        return series
    if len(source) > 1:
        raise RunError("Several sources are given and not each is STEP:PATH; give one folder, one hf: name, or a list.")
    if source[0].startswith(HUB):
        return hub.find(source[0].removeprefix(HUB), patterns)
    return folders.find_in(Path(source[0]).expanduser(), patterns)


def _chosen(series: SourceSeries, steps: Iterable[int] | None) -> list[SourceCheckpoint]:
    """Return the selected checkpoints in order. Raises RunError for duplicate or missing steps, and for mixed units."""
    units = {one.counts.first[1] for one in series.found}
    if len(units) > 1:
        raise RunError(f"The names count {' and '.join(sorted(units))}; give patterns that count the same (--pattern).")
    by_step: dict[int, SourceCheckpoint] = {}
    for one in series.found:
        if (twin := by_step.setdefault(one.step, one)) is not one:
            raise RunError(f"Step {one.step} is there twice, {twin.name} and {one.name}; name one form with --pattern.")
    wanted = sorted(by_step) if steps is None else sorted(set(steps))
    if missing := [step for step in wanted if step not in by_step]:
        listed = ", ".join(map(str, sorted(by_step)[:20])) or "none"
        none = f"The source has no checkpoint at step {missing[0]}; known: {listed}."
        raise RunError(series.incomplete.get(missing[0], none))
    return [by_step[step] for step in wanted]


@contextmanager
def _replacing(target: Path) -> Iterator[tuple[Path, Run | None]]:
    """Yield the new folder that will replace a run's folder, and the earlier run in it or None.

    Raises RunError while another process adds.
    """
    busy = RunError(f"Another `add` is writing to {target.parent}; wait until it ends, then run the same command.")
    runs.own_folder(target, target, BrokenRun)
    with runs.locked(target.parent, busy), runs.replacing(target) as folder:
        old = runs.read_run(target) if os.path.lexists(target) else None
        folder.mkdir()
        yield folder, old
