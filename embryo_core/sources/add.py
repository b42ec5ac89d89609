"""Makes a run of checkpoints that others wrote: their folders are pointed to, or copied; nothing of theirs is changed.

    <root>/runs/<name>/run.json, tokenizer/, log.jsonl
    <root>/runs/<name>/checkpoints/step{N}/config.json, manifest.json (which leads to the weights)

The folder is written whole and takes the place of an earlier one of that name, so that the same command again takes in
what has come since (see earlier.py for what of it stays). A checkpoint that is gone from its source keeps its results,
as one without weights.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tqdm import tqdm

from embryo_core import runs
from embryo_core.engine.capabilities import THROUGH_TRANSFORMERS
from embryo_core.engine.hub_cache import fetch
from embryo_core.errors import BrokenCheckpoint, BrokenRun, BrokenTrainerState, EmbryoError, RunError
from embryo_core.families import FAMILIES
from embryo_core.runs.pointers import HUB
from embryo_core.runs.schema import Settings, TrainerState
from embryo_core.runs.weight_files import PICKLED, SAFETENSORS, check_weights
from embryo_core.sources import earlier, folders, hub, trainer
from embryo_core.sources.found import Found, Series
from embryo_core.sources.grid import planned
from embryo_core.sources.parts import join
from embryo_core.sources.patterns import Counts
from embryo_core.tokenizers.checks import TOKENIZER_FILES
from embryo_core.types import Pointer, Run, SpecialTokens, StepUnit

LISTED = re.compile(r"(\d{1,18}):(.+)")  # STEP:PATH
NAME = re.compile(r"[\w.+-]{1,100}")
SIZES = [name for name in Settings.__struct_fields__ if name in runs.Architecture.__struct_fields__]


@dataclass(frozen=True)
class Added:
    """What became a run, and what did not."""

    run: Run
    steps: tuple[int, ...]
    locations: tuple[str, ...]  # folders of weights, and "hf:" repositories
    kept: tuple[int, ...] = ()  # steps of an earlier run of that name that are as they were
    gone: tuple[int, ...] = ()  # steps whose weights are no longer where they were
    left_alone: tuple[str, ...] = ()  # names in the source that have a number and were not taken
    troubles: list[str] = field(default_factory=list)  # one sentence for each checkpoint that was passed over


def add(
    source: Sequence[str],
    name: str,
    steps: Iterable[int] | None = None,
    patterns: Sequence[str] = (),
    tokenizer: str | None = None,
    copy: bool = False,
) -> Added:
    """Make the run `name` of a source: a folder, hf:OWNER/NAME, or several STEP:PATH.

    `patterns` say how names tell the step (see patterns.py), `steps` which are taken, `tokenizer` is a folder with
    that of the pretraining where the checkpoints have none. Raises RunError for a source without checkpoints, for a
    run of that name that was not added, where results of that name are of other models, and while another process adds.
    """
    target = _target(name)
    series = _find(source, patterns)
    chosen = _chosen(series, steps)
    busy = RunError(f"Another add is at work in {target.parent}; wait for its end, then give the same command.")
    with runs.locked(target.parent, busy), runs.replacing(target) as folder:
        old = runs.read_run(target) if os.path.lexists(target) else None
        folder.mkdir()
        added, troubles = _write_checkpoints(chosen, folder, copy, name)
        troubles[:0] = series.incomplete.values() if steps is None else ()
        if not added:
            raise RunError(f"No checkpoint of {' '.join(source)} can be read: {troubles[0]}")
        text, special = _tokenizer(added[-1], tokenizer)
        _check_room(added, text)
        run = _draft(target.name, folder, added[-1], source, copy)
        run.tokenizer.mkdir()
        (run.tokenizer / "tokenizer.json").write_text(text, encoding="utf-8")
        run = replace(run, tokenizer_sha256=runs.sha256(run.tokenizer / "tokenizer.json"), special_tokens=special)
        earlier.refuse_other_models(old, run)
        kept, gone = earlier.keep(old, run, earlier.places_of(added) | runs.places(target))
        reached = tuple(one.step for one in added)
        known = {*reached, *kept, *gone}
        whole = planned([*known, *series.incomplete], _saved_every(added[-1])) if steps is None else known
        grid = {*whole, *(old.planned_steps if old and steps is not None else ())}
        runs.write_run(replace(run, planned_steps=tuple(sorted(grid))))
        troubles += _write_log(added, old, folder / "log.jsonl")
        runs.read_run(folder)  # what could not be read must not take the place of an earlier one
        # Before the run is there: after a kill it can be added again. What it kept leads where it did before, at most.
        runs.allow(target, earlier.places_of(added) | (earlier.places(folder) & runs.places(target)))
    locations = tuple(sorted({runs.place_of(one.pointer) for one in added}))
    return Added(runs.read_run(target), reached, locations, kept, gone, tuple(series.left_alone), troubles)


# === Finding ===


def _target(name: str) -> Path:
    """The folder of the run. Raises RunError for a name that is none, and where another run has it."""
    if not NAME.fullmatch(name):
        raise RunError(f"'{name}' is no name of a run; give one of letters, digits and . _ + - (--name NAME).")
    target = runs.roots()[0] / "runs" / name
    if os.path.lexists(target) and not (runs.was_added(target) or earlier.points_elsewhere(target)):
        raise RunError(f"There is a run '{name}' in {target}, and it was not added; choose another --name.")
    for root in runs.roots()[1:]:
        if os.path.lexists(root / "runs" / name):
            raise RunError(f"There is a run '{name}' in {root / 'runs'}, which would be hidden; choose another --name.")
    return target


def _find(source: Sequence[str], patterns: Sequence[str]) -> Series:
    for one in source:
        runs.check_text(one)
    listed = [LISTED.fullmatch(one) for one in source]
    if all(listed):
        return Series([_at(place, Counts(step=int(step))) for step, place in (match.groups() for match in listed)])
    if len(source) > 1:
        raise RunError("Several sources are given and not each is STEP:PATH; give one folder, one hf: name, or a list.")
    if source[0].startswith(HUB):
        return hub.find(source[0].removeprefix(HUB), patterns)
    return folders.find_in(Path(source[0]).expanduser(), patterns)


def _at(location: str, counts: Counts) -> Found:
    if location.startswith(HUB):
        return hub.at(location.removeprefix(HUB), counts)
    return folders.at(Path(location).expanduser(), counts)


def _chosen(series: Series, steps: Iterable[int] | None) -> list[Found]:
    """Those of the wanted steps, in order. Raises RunError where one is twice, is missing, or is counted otherwise."""
    units = {one.counts.first[1] for one in series.found}
    if len(units) > 1:
        raise RunError(f"The names count {' and '.join(sorted(units))}; give patterns that count the same (--pattern).")
    by_step: dict[int, Found] = {}
    for one in series.found:
        if (twin := by_step.setdefault(one.step, one)) is not one:
            raise RunError(f"Step {one.step} is there twice, {twin.name} and {one.name}; name one form with --pattern.")
    wanted = sorted(by_step) if steps is None else sorted(set(steps))
    if missing := [step for step in wanted if step not in by_step]:
        known = ", ".join(map(str, sorted(by_step)[:20])) or "none"
        none = f"The source has no checkpoint at step {missing[0]}; known: {known}."
        raise RunError(series.incomplete.get(missing[0], none))
    return [by_step[step] for step in wanted]


# === Writing ===


def _write_checkpoints(chosen: list[Found], folder: Path, copy: bool, name: str) -> tuple[list[Found], list[str]]:
    """Those that were written to a run's folder, and a sentence for each other one."""
    added, troubles = [], []
    for one in tqdm(chosen, desc=name, unit="checkpoint", disable=None):
        try:
            with runs.replacing(folder / "checkpoints" / f"step{one.step}") as path:
                _write_checkpoint(one, path, copy)
                if one.generator:
                    _write_checkpoint(one.generator, path / runs.GENERATOR, copy)
            added.append(one)
        except EmbryoError as reason:
            troubles.append(str(reason))
        except OSError as reason:
            troubles.append(f"{one.name} cannot be read or copied: {reason.strerror}.")
    return added, troubles


def _write_checkpoint(found: Found, folder: Path, copy: bool) -> None:
    """config.json and the manifest, and the weights where they are copied. Raises BrokenCheckpoint."""
    family = runs.read_json(found.config, found.within, runs.ModelClass, BrokenCheckpoint).model_type
    if family not in FAMILIES and family not in THROUGH_TRANSFORMERS:
        known = ", ".join(sorted([*FAMILIES, *THROUGH_TRANSFORMERS]))
        raise BrokenCheckpoint(f"{found.config} has the model_type '{family}', which is not read; known: {known}.")
    sizes = runs.read_json(found.config, found.within, runs.Architecture, BrokenCheckpoint)  # within limits
    if found.parts and not copy:
        raise BrokenCheckpoint(
            f"{found.name} names {len(found.parts)} files of weights, and one is read; add it with --copy, which joins "
            "them."
        )
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(runs.read_bytes(found.config, found.within, BrokenCheckpoint))
    pointer, counts = found.pointer, found.counts
    more: dict[str, Any] = {}
    if found.parts:
        index, *parts = (Path(os.path.realpath(_local(one))) for one in (pointer, *found.parts))
        join(index, parts, sizes, folder / SAFETENSORS)
    elif copy or not pointer.repository:
        weights = Path(os.path.realpath(_local(pointer)))
        check_weights(weights, weights.parent, sizes)  # a file that was cut would take the place of an earlier copy
        if copy:
            shutil.copyfile(weights, folder / (PICKLED if runs.is_pickled(weights, weights.parent) else SAFETENSORS))
    if not copy:
        more["weights"] = {**asdict(pointer), "sha256": found.sha256 or runs.sha256(_local(pointer))}
    runs.write_manifest(folder, found.step, counts.sequences, counts.tokens or _tokens(found), **more)


def _tokenizer(last: Found, named: str | None) -> tuple[str, SpecialTokens]:
    """The tokenizer that was named, or that of the last checkpoint, or that beside the checkpoints."""
    from embryo_core.tokenizers.conversion import convert_tokenizer, has_tokenizer  # transformers takes seconds

    if last.folder is None and not named:
        return convert_tokenizer(hub.fetch_small(last.pointer, TOKENIZER_FILES))
    folders_ = [Path(named).expanduser()] if named else [last.folder, last.folder.parent]
    for candidate in folders_:
        if has_tokenizer(candidate):
            return convert_tokenizer(candidate)
    raise RunError(
        f"There is no tokenizer in {' and '.join(map(str, folders_))}; name its folder with --tokenizer FOLDER."
    )


def _check_room(added: list[Found], tokenizer: str) -> None:
    """Raise RunError where the vocabulary of a checkpoint has no room for the pieces of the tokenizer."""
    pieces = Tokenizer.from_str(tokenizer).get_vocab_size(with_added_tokens=True)
    for one in added:
        rows = runs.read_json(one.config, one.within, runs.Architecture, BrokenCheckpoint).vocab_size
        if rows < pieces:
            raise RunError(
                f"The tokenizer has {pieces:,} pieces, and {one.config} a vocab_size of {rows:,}; name the tokenizer "
                "of the pretraining with --tokenizer FOLDER."
            )


def _draft(name: str, folder: Path, last: Found, source: Sequence[str], copied: bool) -> Run:
    """The run as far as its last checkpoint tells it."""
    config = runs.read_json(last.config, last.within, dict[str, Any], BrokenRun)
    model = runs.read_json(last.config, last.within, runs.ModelClass, BrokenRun)
    sizes = {name: config[name] for name in SIZES if config.get(name) is not None}
    where = source[0] if len(source) == 1 else f"a list of {len(source)} checkpoints"
    return Run(
        name=name,
        path=folder,
        family=model.model_type,
        objective=model.name or "unknown",
        config=sizes,
        tokenizer_sha256="",
        corpus={},
        planned_steps=(),
        code_version=version("embryo"),
        note=f"Added from {where}{'' if copied else ', where its weights are'}.",
        step_unit=StepUnit(last.counts.first[1]),
    )


def _local(pointer: Pointer) -> Path:
    return fetch(pointer) if pointer.repository else Path(pointer.file)


def _tokens(found: Found) -> int | None:
    """Tokens that a Trainer counted; it counts them only where it is told to."""
    return _state(found).num_input_tokens_seen or None


def _saved_every(found: Found) -> int:
    """Updates from one checkpoint of a Trainer to the next; 0 where nobody says."""
    state = _state(found)
    return int(state.save_steps) if found.counts.step == state.global_step else 0


def _state(found: Found) -> TrainerState:
    """What a Trainer noted down; an empty one where there is none, or none that can be read."""
    try:
        return (trainer.read_state(found.folder) if found.folder else None) or TrainerState()
    except BrokenTrainerState:  # said once, of the log
        return TrainerState()


def _write_log(added: list[Found], old: Run | None, path: Path) -> list[str]:
    """The log of the last Trainer's state, which holds those before it, and of the earlier run what comes after.

    Returns a sentence for each state that cannot be read.
    """
    rows, troubles = [], []
    for one in reversed(added):
        try:
            state = trainer.read_state(one.folder) if one.folder else None
        except BrokenTrainerState as reason:
            troubles.append(str(reason))
            continue
        if state:
            model = runs.read_json(one.config, one.within, runs.ModelClass, BrokenRun)
            rows = list(trainer.log_rows(state, model.name.endswith("ForMaskedLM")))
            break
    last = max((row["step"] for row in rows), default=-1)
    rows += [row for row in (runs.read_log(old) if old else ()) if row["step"] > last]
    if rows:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return troubles
