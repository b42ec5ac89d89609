"""Write the parts of an added run: its checkpoints, its tokenizer, and the draft of its run.json."""

import os
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer
from tqdm import tqdm

from embryo_core import runs
from embryo_core.engine.capabilities import is_decoder, is_supported
from embryo_core.engine.hub_cache import fetch
from embryo_core.errors import BrokenCheckpoint, BrokenRun, EmbryoError, MissingWeights, RunError
from embryo_core.runs.architecture import OTHER_NAMES
from embryo_core.runs.checkpoint_files import PICKLED, SAFETENSORS, check_parts
from embryo_core.runs.pointers import HUB
from embryo_core.runs.schema import Settings
from embryo_core.sources import hub, trainer
from embryo_core.sources.shards import check_shards, join_shards
from embryo_core.sources.source_series import SourceCheckpoint
from embryo_core.types import Pointer, Run, StepUnit
from embryo_core.words import name_step

if TYPE_CHECKING:
    from embryo_core.tokenizers.conversion import ConvertedTokenizer

SEED_PATTERN = re.compile(r"seed[-_]?(\d{1,9})(?!\d)", re.IGNORECASE)
SIZE_SETTINGS = [name for name in Settings.__struct_fields__ if name in runs.Architecture.__struct_fields__]


def write_checkpoints(
    checkpoints: list[SourceCheckpoint], folder: Path, copy: bool, name: str
) -> tuple[list[SourceCheckpoint], list[str]]:
    """Write checkpoints to a run's folder; return those written, and a sentence for each one that failed.

    Without `copy`, the files are hashed in parallel.
    """

    def write(checkpoint: SourceCheckpoint) -> str | None:
        step_name = name_step(checkpoint.step, StepUnit(checkpoint.counts.first[1])).capitalize()
        try:
            with runs.replacing(folder / "checkpoints" / f"step{checkpoint.step}") as path:
                _write_checkpoint(checkpoint, path, copy)
                if checkpoint.generator:
                    _write_checkpoint(checkpoint.generator, path / runs.GENERATOR, copy)
        except MissingWeights:  # the Hub does not answer; skipping would leave a gap in the run
            raise
        except EmbryoError as reason:
            return f"{step_name}: {reason}"
        except OSError as reason:
            return f"{step_name}: {checkpoint.name} cannot be read or copied: {reason.strerror}."
        return None

    pool = ThreadPoolExecutor(1 if copy else os.cpu_count() or 1)
    try:
        written = pool.map(write, checkpoints)
        outcomes = list(tqdm(written, desc=name, total=len(checkpoints), unit="checkpoint", disable=None))
    finally:
        pool.shutdown(cancel_futures=True)
    added = [checkpoint for checkpoint, trouble in zip(checkpoints, outcomes, strict=True) if trouble is None]
    return added, [trouble for trouble in outcomes if trouble]


def _write_checkpoint(source: SourceCheckpoint, folder: Path, copy: bool) -> None:
    """Write config.json and the manifest, and the weights if they are copied. Raises BrokenCheckpoint."""
    family = source.model_class.model_type
    if not is_supported(family):
        raise BrokenCheckpoint(
            f"{source.config} has the model_type '{family}', which is not read; Embryo reads masked language models "
            "and decoders of text that transformers loads."
        )
    sizes = runs.read_json(source.config, source.root, runs.Architecture, BrokenCheckpoint)  # checks the limits
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(runs.read_bytes(source.config, source.root, BrokenCheckpoint))
    counts, pointers = source.counts, source.pointer.files
    at_hand = copy or not source.pointer.repository
    files = [Path(os.path.realpath(_local(pointer))) for pointer in pointers] if at_hand else []
    check_parts({file: file.parent for file in files}, sizes)  # a truncated file must not replace an earlier copy
    if source.index and files:
        check_shards(source.index, files)
    if copy and source.index:
        join_shards(source.index, files, folder / SAFETENSORS)
    elif copy:
        shutil.copyfile(files[0], folder / (PICKLED if runs.is_pickled(files[0], files[0].parent) else SAFETENSORS))
    more: dict[str, Any] = {}
    if not copy:
        known_hashes = source.hashes or [None] * len(pointers)
        hashes = [
            sha256 or runs.sha256(_local(pointer)) for sha256, pointer in zip(known_hashes, pointers, strict=True)
        ]
        parts = dict(zip(source.pointer.parts, hashes[1:], strict=True))
        more["weights"] = asdict(source.pointer) | {"sha256": hashes[0], "parts": parts}
    state = trainer.trainer_state(source)
    # A Trainer counts tokens only on request, and from the start of its phase of training.
    seen = state.num_input_tokens_seen if counts.step in (None, state.global_step) else 0
    runs.write_manifest(folder, source.step, counts.sequences, counts.tokens or seen or None, **more)


def write_tokenizer(run: Run, added: list[SourceCheckpoint], tokenizer_source: str | None) -> tuple[Run, str]:
    """Write the tokenizer to the run's folder; return the run with the tokenizer's hash, and a remark or ""."""
    text, special, remark = _tokenizer(added[-1], tokenizer_source)
    _check_room(added, text)
    run.tokenizer.mkdir()
    path = run.tokenizer / "tokenizer.json"
    path.write_text(text, encoding="utf-8")
    return replace(run, tokenizer_sha256=runs.sha256(path), special_tokens=special), remark


def _tokenizer(last: SourceCheckpoint, tokenizer_source: str | None) -> "ConvertedTokenizer":
    """Return the named tokenizer, else the one in the last checkpoint's folder, else the one in the folder above it."""
    # transformers takes seconds to import
    from embryo_core.tokenizers.conversion import convert_tokenizer, has_tokenizer

    decoder = is_decoder(last.model_class)
    if tokenizer_source and tokenizer_source.startswith(HUB):
        return convert_tokenizer(hub.fetch_tokenizer(tokenizer_source.removeprefix(HUB)), decoder)
    if tokenizer_source:
        candidates = [Path(tokenizer_source).expanduser()]
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
    for checkpoint in added:
        rows = runs.read_json(checkpoint.config, checkpoint.root, runs.Architecture, BrokenCheckpoint).vocab_size
        if rows < pieces:
            raise RunError(
                f"The tokenizer has {pieces:,} pieces, and {checkpoint.config} a vocab_size of {rows:,}; name the "
                "tokenizer of the pretraining with --tokenizer FOLDER."
            )


def draft_run(
    name: str, folder: Path, last: SourceCheckpoint, source: Sequence[str], copied: bool, seed: int | None
) -> Run:
    """Return the run as its last checkpoint's config.json describes it, without tokenizer and planned steps."""
    config = runs.read_json(last.config, last.root, dict[str, Any], BrokenRun)
    settings = _sizes(config)
    if seed is None:  # from the first name that has one ("multiberts-seed_0"), or else from config.json
        name_seeds = [seeds[-1] for text in (*source, name) if (seeds := SEED_PATTERN.findall(text))]
        seed = int(name_seeds[0]) if name_seeds else config.get("seed")
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
    names = {name: (name, *OTHER_NAMES[name][1].split()) if name in OTHER_NAMES else (name,) for name in SIZE_SETTINGS}
    values = {
        name: next((config[alias] for alias in names[name] if config.get(alias) is not None), None)
        for name in SIZE_SETTINGS
    }
    if values["intermediate_size"] is None and type(values["hidden_size"]) is int:
        values["intermediate_size"] = 4 * values["hidden_size"]
    return {name: value for name, value in values.items() if value is not None}


def _local(pointer: Pointer) -> Path:
    return fetch(pointer) if pointer.repository else Path(pointer.file)
