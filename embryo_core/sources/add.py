"""Make a run from checkpoints that other code wrote: point to their folders, or copy them; the source is unchanged.

    <root>/runs/<name>/run.json, tokenizer/, log.jsonl
    <root>/runs/<name>/checkpoints/step{N}/config.json, manifest.json (which points to the weights)

The whole folder is written anew and then replaces an earlier run of that name, so repeating the command adds new
checkpoints (earlier.py decides what is kept). A checkpoint that is gone from the source keeps its results, but not its
weights.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer
from tqdm import tqdm

from embryo_core import runs
from embryo_core.engine.capabilities import describe_capabilities, is_decoder, is_read
from embryo_core.engine.hub_cache import fetch
from embryo_core.errors import BrokenCheckpoint, BrokenRun, EmbryoError, MissingWeights, RunError
from embryo_core.runs.architecture import OTHER_NAMES
from embryo_core.runs.checkpoint_files import PICKLED, SAFETENSORS, check_parts
from embryo_core.runs.pointers import HUB
from embryo_core.runs.schema import Settings
from embryo_core.sources import earlier, folders, hub, trainer
from embryo_core.sources.patterns import Counts
from embryo_core.sources.shards import check_shards, join_shards
from embryo_core.sources.source_series import SourceCheckpoint, SourceSeries, planned
from embryo_core.types import Pointer, Run, StepUnit
from embryo_core.words import name_step

if TYPE_CHECKING:
    from embryo_core.tokenizers.conversion import ConvertedTokenizer

LISTED = re.compile(r"(\d{1,18}):(.+)")  # STEP:PATH
NAME = re.compile(r"[\w.+-]{1,100}")
SEED_PATTERN = re.compile(r"seed[-_]?(\d{1,9})(?!\d)", re.IGNORECASE)
SIZES = [name for name in Settings.__struct_fields__ if name in runs.Architecture.__struct_fields__]


@dataclass(frozen=True)
class AddReport:
    """The outcome of `add`."""

    run: Run
    steps: tuple[int, ...]
    locations: tuple[str, ...]  # folders and "hf:" repositories of the weights
    kept: tuple[int, ...] = ()  # steps kept unchanged from an earlier run of that name
    gone: tuple[int, ...] = ()  # steps of the earlier run whose weights are gone
    unmatched: tuple[str, ...] = ()  # names in the source that end in a number but match no pattern
    troubles: list[str] = field(default_factory=list)  # one sentence for each skipped checkpoint
    notes: tuple[str, ...] = ()  # sentences on other content of the source
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
        added, troubles = _write_checkpoints(chosen, folder, copy, name)
        troubles[:0] = series.incomplete.values() if steps is None else ()
        if not added:
            raise RunError(f"No checkpoint of {' '.join(source)} can be read: {troubles[0]}")
        run = _draft(target.name, folder, added[-1], source, copy, seed)
        run, remark = _write_tokenizer(run, added, tokenizer)
        earlier.refuse_other_models(old, run)
        kept, gone = earlier.keep(old, run, earlier.sources_of(added) | runs.allowed_sources(target))
        written = tuple(checkpoint.step for checkpoint in added)
        if steps is None:
            grid = planned([*written, *kept, *gone, *series.incomplete], trainer.saved_every(added[-1]))
        else:
            grid = (*written, *kept, *gone, *(old.planned_steps if old else ()))
        runs.write_run(replace(run, planned_steps=tuple(sorted({*grid}))))
        unread, odd = trainer.write_log(added, old, folder / "log.jsonl")
        runs.read_run(folder)  # an unreadable run must not replace an earlier one
        # Allowed before the run exists, so that it can be added again after a crash; kept pointers need no new
        # permission.
        runs.allow(target, earlier.sources_of(added) | (earlier.weight_sources(folder) & runs.allowed_sources(target)))
    run = runs.read_run(target)
    locations = tuple(sorted({runs.source_of(checkpoint.pointer) for checkpoint in added}))
    remarks = (*describe_capabilities(run), *filter(None, [remark, odd]))
    return AddReport(
        run, written, locations, kept, gone, tuple(series.unmatched), troubles + unread, tuple(series.notes), remarks
    )


# === Finding ===


def _target(name: str) -> Path:
    """Return the folder of the run. Raises RunError for an invalid name, or if a run that was not added has it."""
    if not NAME.fullmatch(name):
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
        runs.check_text(one)
    listed = [match for one in source if (match := LISTED.fullmatch(one))]
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


# === Writing ===


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


def _write_checkpoints(
    chosen: list[SourceCheckpoint], folder: Path, copy: bool, name: str
) -> tuple[list[SourceCheckpoint], list[str]]:
    """Write checkpoints to a run's folder; return those written, and a sentence for each one that failed.

    Without `copy`, the files are hashed in parallel.
    """

    def write(one: SourceCheckpoint) -> str | None:
        step_name = name_step(one.step, StepUnit(one.counts.first[1])).capitalize()
        try:
            with runs.replacing(folder / "checkpoints" / f"step{one.step}") as path:
                _write_checkpoint(one, path, copy)
                if one.generator:
                    _write_checkpoint(one.generator, path / runs.GENERATOR, copy)
        except MissingWeights:  # the Hub does not answer; skipping would leave a gap in the run
            raise
        except EmbryoError as reason:
            return f"{step_name}: {reason}"
        except OSError as reason:
            return f"{step_name}: {one.name} cannot be read or copied: {reason.strerror}."
        return None

    pool = ThreadPoolExecutor(1 if copy else os.cpu_count() or 1)
    try:
        written = pool.map(write, chosen)
        outcomes = list(tqdm(written, desc=name, total=len(chosen), unit="checkpoint", disable=None))
    finally:
        pool.shutdown(cancel_futures=True)
    added = [one for one, trouble in zip(chosen, outcomes, strict=True) if trouble is None]
    return added, [trouble for trouble in outcomes if trouble]


def _write_checkpoint(source: SourceCheckpoint, folder: Path, copy: bool) -> None:
    """Write config.json and the manifest, and the weights if they are copied. Raises BrokenCheckpoint."""
    family = source.model_class.model_type
    if not is_read(family):
        raise BrokenCheckpoint(
            f"{source.config} has the model_type '{family}', which is not read; Embryo reads masked language models "
            "and decoders of text that transformers loads."
        )
    sizes = runs.read_json(source.config, source.within, runs.Architecture, BrokenCheckpoint)  # checks the limits
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(runs.read_bytes(source.config, source.within, BrokenCheckpoint))
    counts, pointers = source.counts, source.pointer.files
    at_hand = copy or not source.pointer.repository
    files = [Path(os.path.realpath(_local(one))) for one in pointers] if at_hand else []
    check_parts({file: file.parent for file in files}, sizes)  # a truncated file must not replace an earlier copy
    if source.index and files:
        check_shards(source.index, files)
    if copy and source.index:
        join_shards(source.index, files, folder / SAFETENSORS)
    elif copy:
        shutil.copyfile(files[0], folder / (PICKLED if runs.is_pickled(files[0], files[0].parent) else SAFETENSORS))
    more: dict[str, Any] = {}
    if not copy:
        listed = source.hashes or [None] * len(pointers)
        hashes = [sha256 or runs.sha256(_local(one)) for sha256, one in zip(listed, pointers, strict=True)]
        more["weights"] = asdict(source.pointer) | {
            "sha256": hashes[0],
            "parts": dict(zip(source.pointer.parts, hashes[1:], strict=True)),
        }
    # a Trainer counts tokens only on request
    tokens = counts.tokens or trainer.trainer_state(source).num_input_tokens_seen or None
    runs.write_manifest(folder, source.step, counts.sequences, tokens, **more)


def _write_tokenizer(run: Run, added: list[SourceCheckpoint], named: str | None) -> tuple[Run, str]:
    """Write the tokenizer to the run's folder; return the run with the tokenizer's hash, and a remark or ""."""
    text, special, remark = _tokenizer(added[-1], named)
    _check_room(added, text)
    run.tokenizer.mkdir()
    path = run.tokenizer / "tokenizer.json"
    path.write_text(text, encoding="utf-8")
    return replace(run, tokenizer_sha256=runs.sha256(path), special_tokens=special), remark


def _tokenizer(last: SourceCheckpoint, named: str | None) -> "ConvertedTokenizer":
    """Return the named tokenizer, else the one in the last checkpoint's folder, else the one in the folder above it."""
    # transformers takes seconds to import
    from embryo_core.tokenizers.conversion import convert_tokenizer, has_tokenizer

    decoder = is_decoder(last.model_class)
    if named and named.startswith(HUB):
        return convert_tokenizer(hub.fetch_tokenizer(named.removeprefix(HUB)), decoder)
    if named:
        candidates = [Path(named).expanduser()]
    elif last.folder:
        candidates = [last.folder, last.folder.parent]
    else:
        return convert_tokenizer(hub.tokenizer_above(last.pointer), decoder)
    for candidate in candidates:
        if has_tokenizer(candidate):
            return convert_tokenizer(candidate, decoder)
    raise RunError(
        f"There is no tokenizer in {' and '.join(map(str, candidates))}; name its folder with --tokenizer FOLDER."
    )


def _check_room(added: list[SourceCheckpoint], tokenizer: str) -> None:
    """Raise RunError if a checkpoint's vocabulary is smaller than the tokenizer's."""
    pieces = Tokenizer.from_str(tokenizer).get_vocab_size(with_added_tokens=True)
    for one in added:
        rows = runs.read_json(one.config, one.within, runs.Architecture, BrokenCheckpoint).vocab_size
        if rows < pieces:
            raise RunError(
                f"The tokenizer has {pieces:,} pieces, and {one.config} a vocab_size of {rows:,}; name the tokenizer "
                "of the pretraining with --tokenizer FOLDER."
            )


def _draft(
    name: str, folder: Path, last: SourceCheckpoint, source: Sequence[str], copied: bool, seed: int | None
) -> Run:
    """Return the run as its last checkpoint's config.json describes it, without tokenizer and planned steps."""
    config = runs.read_json(last.config, last.within, dict[str, Any], BrokenRun)
    settings = _sizes(config)
    if seed is None:  # from the first name that has one ("multiberts-seed_0"), or else from config.json
        named = [seeds[-1] for one in (*source, name) if (seeds := SEED_PATTERN.findall(one))]
        seed = int(named[0]) if named else config.get("seed")
    if type(seed) is int:
        settings["seed"] = seed
    where = source[0] if len(source) == 1 else f"a list of {len(source)} checkpoints"
    return Run(
        name=name,
        path=folder,
        family=last.model_class.model_type,
        objective=last.model_class.name or "unknown",
        config=settings,
        tokenizer_sha256="",
        corpus={},
        planned_steps=(),
        code_version=version("embryo"),
        note=f"Added from {where}{'' if copied else ', where its weights are'}.",
        step_unit=StepUnit(last.counts.first[1]),
    )


def _sizes(config: dict[str, Any]) -> dict[str, Any]:
    """Return the sizes in a config.json, named as in BERT's; decoders have other names and may omit the inner size."""
    names = {name: (name, *OTHER_NAMES[name][1].split()) if name in OTHER_NAMES else (name,) for name in SIZES}
    values = {
        name: next((config[each] for each in names[name] if config.get(each) is not None), None) for name in SIZES
    }
    if values["intermediate_size"] is None and type(values["hidden_size"]) is int:
        values["intermediate_size"] = 4 * values["hidden_size"]
    return {name: value for name, value in values.items() if value is not None}


def _local(pointer: Pointer) -> Path:
    return fetch(pointer) if pointer.repository else Path(pointer.file)
