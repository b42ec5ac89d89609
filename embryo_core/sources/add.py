"""Makes a run of checkpoints that others wrote: their folders are pointed to, or copied; nothing of theirs is changed.

    <root>/runs/<name>/run.json, tokenizer/, log.jsonl
    <root>/runs/<name>/checkpoints/step{N}/config.json, manifest.json (which leads to the weights)

The folder is written whole and takes the place of an earlier one of that name, so that the same command again takes in
what has come since. A checkpoint that is gone from its source keeps its results, as one without weights.
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

from tqdm import tqdm

from embryo_core import runs
from embryo_core.engine.capabilities import THROUGH_TRANSFORMERS
from embryo_core.engine.remote import fetch
from embryo_core.errors import BrokenCheckpoint, BrokenRun, EmbryoError, RunError
from embryo_core.families import FAMILIES
from embryo_core.runs.pointers import HUB
from embryo_core.runs.schema import Manifest, Settings
from embryo_core.runs.weight_files import PICKLED, SAFETENSORS, WEIGHTS
from embryo_core.sources import folders, hub, trainer
from embryo_core.sources.found import Found
from embryo_core.sources.grid import planned
from embryo_core.sources.patterns import Counts
from embryo_core.types import Pointer, Run

LISTED = re.compile(r"(\d{1,18}):(.+)")  # STEP:PATH
NAME = re.compile(r"[\w.+-]{1,100}")


@dataclass(frozen=True)
class Added:
    """What became a run, and what did not."""

    run: Run
    steps: tuple[int, ...]
    locations: tuple[str, ...]  # folders of weights, and "hf:" repositories
    gone: tuple[int, ...] = ()  # steps whose weights are no longer where they were
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
    that of the pretraining where the checkpoints have none. Raises RunError for a source without checkpoints, and for a
    run of that name that was not added.
    """
    target = _target(name)
    found = _chosen(_find(source, patterns), steps)
    run, added = _begin(target, found, source), []
    with runs.replacing(target) as folder:
        folder.mkdir()
        draft = replace(run, path=folder)
        text, special = _tokenizer(found, tokenizer)
        draft.tokenizer.mkdir()
        (draft.tokenizer / "tokenizer.json").write_text(text, encoding="utf-8")
        troubles = []
        for one in tqdm(found, desc=name, unit="checkpoint", disable=None):
            try:
                _write_checkpoint(one, folder / "checkpoints" / f"step{one.counts.first[0]}", copy)
                added.append(one)
            except EmbryoError as reason:
                troubles.append(str(reason))
        if not added:
            raise RunError(f"No checkpoint of {' '.join(source)} can be read: {troubles[0]}")
        gone = _keep_gone(target, folder)
        reached = tuple(one.counts.first[0] for one in added)
        sha256 = runs.sha256(draft.tokenizer / "tokenizer.json")
        grid = planned(sorted({*reached, *gone}))
        runs.write_run(replace(draft, tokenizer_sha256=sha256, special_tokens=special, planned_steps=grid))
        _write_log(added, folder / "log.jsonl")
        locations = tuple(sorted({_place_of(one) for one in added}))
        runs.allow(target, () if copy else locations)  # before the run is there: after a kill it can be added again
    return Added(runs.read_run(target), reached, locations, gone, troubles)


# === Finding ===


def _target(name: str) -> Path:
    """The folder of the run. Raises RunError for a name that is none, and where another run has it."""
    if not NAME.fullmatch(name):
        raise RunError(f"'{name}' is no name of a run; give one of letters, digits and . _ + - (--name NAME).")
    target = runs.roots()[0] / "runs" / name
    if os.path.lexists(target) and not runs.was_added(target):
        raise RunError(f"There is a run '{name}' in {target}, and it was not added; choose another --name.")
    return target


def _find(source: Sequence[str], patterns: Sequence[str]) -> list[Found]:
    listed = [LISTED.fullmatch(one) for one in source]
    if all(listed):
        return [_at(location, Counts(step=int(step))) for step, location in (match.groups() for match in listed)]
    if len(source) > 1:
        raise RunError("Several sources are given and not each is STEP:PATH; give one folder, one hf: name, or a list.")
    if source[0].startswith(HUB):
        return hub.find(source[0].removeprefix(HUB), patterns)
    return folders.find_in(Path(source[0]).expanduser(), patterns)


def _at(location: str, counts: Counts) -> Found:
    if location.startswith(HUB):
        return hub.at(location.removeprefix(HUB), counts)
    return folders.at(Path(location).expanduser(), counts)


def _chosen(found: list[Found], steps: Iterable[int] | None) -> list[Found]:
    """Those of the wanted steps, in order. Raises RunError where one is twice, is missing, or is counted otherwise."""
    units = {one.counts.first[1] for one in found}
    if len(units) > 1:
        raise RunError(f"The names count {' and '.join(sorted(units))}; give patterns that count the same (--pattern).")
    by_step: dict[int, Found] = {}
    for one in found:
        if (twin := by_step.setdefault(step := one.counts.first[0], one)) is not one:
            raise RunError(f"Step {step} is there twice, {twin.name} and {one.name}; name one form with --pattern.")
    wanted = sorted(by_step) if steps is None else sorted(set(steps))
    if missing := [step for step in wanted if step not in by_step]:
        known = ", ".join(map(str, sorted(by_step)[:20]))
        raise RunError(f"The source has no checkpoint at step {missing[0]}; known: {known}.")
    return [by_step[step] for step in wanted]


def _place_of(found: Found) -> str:
    if found.pointer.repository:
        return HUB + found.pointer.repository
    return str(Path(found.pointer.file).parent)


# === Writing ===


def _begin(target: Path, found: list[Found], source: Sequence[str]) -> Run:
    """The run as far as it is known before its checkpoints are read."""
    last = found[-1]
    config = runs.read_json(last.config, last.within, dict[str, Any], BrokenRun)
    model = runs.read_json(last.config, last.within, runs.ModelClass, BrokenRun)
    settings = {name: config[name] for name in Settings.__struct_fields__ if isinstance(config.get(name), int)}
    where = source[0] if len(source) == 1 else f"a list of {len(source)} checkpoints"
    return Run(
        name=target.name,
        path=target,
        family=model.model_type,
        objective=model.name or "unknown",
        config=settings,
        tokenizer_sha256="",
        corpus={},
        planned_steps=(),
        code_version=version("embryo"),
        note=f"Added from {where}, where its weights are.",
        counted_in=last.counts.first[1],
    )


def _tokenizer(found: list[Found], named: str | None) -> tuple[str, Any]:
    """The tokenizer that was named, or that of the last checkpoint, or that beside the checkpoints."""
    from embryo_core.engine.foreign_tokenizer import FILES, has_tokenizer, read_foreign  # transformers takes seconds

    last = found[-1]
    if last.pointer.repository and not named:
        return read_foreign(hub.fetch_small(last.pointer, FILES))
    folder = Path(last.pointer.file).parent
    for candidate in [Path(named).expanduser()] if named else [last.config.parent, folder, folder.parent]:
        if has_tokenizer(candidate):
            return read_foreign(candidate)
    where = named or f"{folder} and {folder.parent}"
    raise RunError(f"There is no tokenizer in {where}; name its folder with --tokenizer FOLDER.")


def _write_checkpoint(found: Found, folder: Path, copy: bool) -> None:
    """config.json and the manifest, and the weights where they are copied. Raises BrokenCheckpoint."""
    family = runs.read_json(found.config, found.within, runs.Architecture, BrokenCheckpoint).model_type
    if family not in FAMILIES and family not in THROUGH_TRANSFORMERS:
        known = ", ".join(sorted([*FAMILIES, *THROUGH_TRANSFORMERS]))
        raise BrokenCheckpoint(f"{found.config} has the model_type '{family}', which is not read; known: {known}.")
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(runs.read_bytes(found.config, found.within, BrokenCheckpoint))
    pointer, counts = found.pointer, found.counts
    more: dict[str, Any] = {}
    if copy:
        weights = _local(pointer)
        shutil.copyfile(weights, folder / (SAFETENSORS if weights.suffix == ".safetensors" else PICKLED))
    else:
        more["weights"] = {**asdict(pointer), "sha256": found.sha256 or runs.sha256(_local(pointer))}
    runs.write_manifest(folder, counts.first[0], counts.sequences, counts.tokens or _tokens(found), **more)


def _local(pointer: Pointer) -> Path:
    return fetch(pointer) if pointer.repository else Path(pointer.file)


def _tokens(found: Found) -> int | None:
    """Tokens that a Trainer counted; it counts them only where it is told to."""
    state = found.trainer_state
    return (trainer.read_state(state, state.parent).num_input_tokens_seen or None) if state else None


def _keep_gone(old: Path, new: Path) -> tuple[int, ...]:
    """Checkpoints of the earlier run whose source is gone stay as ones without weights, so that results do."""
    gone = []
    for path in sorted((old / "checkpoints").glob("step*/manifest.json")):
        manifest = runs.read_json(path, old, Manifest, BrokenRun)
        kept = new / "checkpoints" / path.parent.name
        if kept.exists():
            continue
        kept.mkdir(parents=True)
        shutil.copyfile(path.parent / "config.json", kept / "config.json")
        removed = manifest.removed or {name: sha for name, sha in manifest.sha256.items() if name in WEIGHTS}
        if manifest.weights:
            removed = {SAFETENSORS: manifest.weights.sha256}
        runs.write_manifest(kept, manifest.step, manifest.sequences, manifest.tokens, removed=removed)
        gone.append(manifest.step)
    return tuple(gone)


def _write_log(added: list[Found], path: Path) -> None:
    """The log of the last Trainer's state, which holds those before it."""
    states = [one for one in added if one.trainer_state]
    if not states:
        return
    last = states[-1]
    model = runs.read_json(last.config, last.within, runs.ModelClass, BrokenRun)
    state = trainer.read_state(last.trainer_state, last.trainer_state.parent)
    rows = trainer.log_rows(state, model.name.endswith("ForMaskedLM"))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
