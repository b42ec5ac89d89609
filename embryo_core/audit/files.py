"""Faults of files: missing steps, folders with another step's manifest, equal weight files, and odd configs."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint, BrokenRun, TokenizerMismatch, printable
from embryo_core.runs import Fault
from embryo_core.runs.manifests import read_manifest
from embryo_core.tokenizers.checks import TOKENIZER_FILES
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Checkpoint, Run
from embryo_core.words import join_steps, name_step, with_step_unit

CALL_SETTINGS = ("truncation", "padding")  # settings of the tokenizer's last call, which tokenizer.json also stores
TOKENIZER_NAMES = (*TOKENIZER_FILES, "merges.txt", "added_tokens.json")
SETTINGS_FILE = "tokenizer_config.json"
MAX_LISTED_STEPS = 20  # missing steps named in a message; further ones are counted
SPLITTING_SETTINGS = (  # settings of tokenizer_config.json that change the pieces of a text
    "do_lower_case strip_accents keep_accents remove_space tokenize_chinese_chars add_prefix_space bos_token eos_token "
    "cls_token sep_token mask_token pad_token unk_token"
).split()


def find_missing_steps(run: Run) -> list[Fault]:
    """Return one fault for all planned steps without a checkpoint."""
    steps = tuple(runs.missing_steps(run))
    if not steps:
        return []
    steps_text = name_step(steps[0], run.step_unit)
    if len(steps) > 1:
        steps_text = with_step_unit(", ".join(f"{step:,}" for step in steps[:MAX_LISTED_STEPS]), run.step_unit)
    remainder = f" and {len(steps) - MAX_LISTED_STEPS:,} more" if len(steps) > MAX_LISTED_STEPS else ""
    text = (
        f"The planned grid has no checkpoint at {steps_text}{remainder}; copy the missing ones from the source of the "
        "others."
    )
    return [Fault(steps, "missing", text)]


def find_other_configs(checkpoints: Iterable[Checkpoint]) -> list[Fault]:
    """Return a fault for each checkpoint whose config.json differs from the most common one."""
    contents = {}
    for checkpoint in checkpoints:
        with suppress(BrokenCheckpoint):  # reported when the checkpoint is read
            contents[checkpoint] = _configs(checkpoint)
    texts = {checkpoint: repr(sorted(content.items())) for checkpoint, content in contents.items()}
    common = _most_common(texts)
    usual = next((content for checkpoint, content in contents.items() if texts[checkpoint] == common), {})
    return [
        Fault((outlier.step,), "config", _other_config(name_step(outlier.step, outlier.run.step_unit), config, usual))
        for outlier, config in contents.items()
        if config != usual
    ]


def _configs(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the fields of config.json that describe the model; a generator's begin with "generator."."""
    fields_of_model = runs.model_fields(runs.read_config(checkpoint, dict[str, Any]))
    if (inside := runs.generator(checkpoint)) is None:
        return fields_of_model
    generator = runs.model_fields(runs.read_config(inside, dict[str, Any]))
    return fields_of_model | {f"{runs.GENERATOR}.{name}": value for name, value in generator.items()}


def _other_config(checkpoint: str, config: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    names = [name for name in sorted({*config, *usual}) if config.get(name) != usual.get(name)]
    return (
        f"config.json at {checkpoint} differs from that of the other checkpoints in {printable(', '.join(names[:5]))}; "
        "make sure that it belongs to the same pretraining, or leave the checkpoint out."
    )


def find_equal_weights(
    checkpoints: Sequence[Checkpoint], fetched: Collection[Checkpoint], is_frozen: Callable[[int, int], bool]
) -> list[Fault]:
    """Return a fault for each group of steps whose manifests name the same SHA-256 of the weights.

    `is_frozen(i, j)` says whether no weight could move between two steps. Groups in which all checkpoints are `fetched`
    are left out, since their tensors are compared.
    """
    groups: dict[str, list[Checkpoint]] = {}
    for checkpoint in checkpoints:
        if weights := read_manifest(checkpoint.path, checkpoint.run.path)[0].weights:
            group = groups.setdefault(weights.digest, [])
            if not (group and is_frozen(group[-1].step, checkpoint.step)):
                group.append(checkpoint)
    return [
        Fault(
            steps := tuple(checkpoint.step for checkpoint in group),
            "equal",
            f"The files of weights at {join_steps(steps, group[0].run.step_unit)} are the same file, by the SHA-256 of "
            "their source; ask there for the right ones, or leave all but one out.",
        )
        for group in groups.values()
        if len(group) > 1 and any(checkpoint not in fetched for checkpoint in group)
    ]


def find_other_tokenizers(checkpoints: Iterable[Checkpoint]) -> list[Fault]:
    """Return a fault for each checkpoint whose tokenizer differs from the most common one; a folder may have none."""
    digests = {checkpoint: digest for checkpoint in checkpoints if (digest := _tokenizer_digest(checkpoint))}
    common = _most_common(digests)
    return [
        Fault(
            (outlier.step,),
            "tokenizer",
            f"The tokenizer with the weights at {name_step(outlier.step, outlier.run.step_unit)} differs from that of "
            "the other checkpoints; make sure that it belongs to the same pretraining, or leave the checkpoint out.",
        )
        for outlier, own_digest in digests.items()
        if own_digest != common
    ]


def _tokenizer_digest(checkpoint: Checkpoint) -> str:
    """Return a hash of the tokenizer files in the folder of the weights; "" if none can be read."""
    try:
        weights, root = runs.weights_files(checkpoint)[0]
        files = [name for name in TOKENIZER_NAMES if (weights.parent / name).is_file()]
        if files and (weights.parent / SETTINGS_FILE).is_file():
            files.append(SETTINGS_FILE)
        content_of = {name: runs.read_bytes(weights.parent / name, root, BrokenCheckpoint) for name in files}
    except BrokenCheckpoint:
        return ""
    contents = [
        (_splitting_settings if name == SETTINGS_FILE else _without_calls)(content_of[name]) for name in content_of
    ]
    return hashlib.sha256(b"\0".join(contents)).hexdigest() if contents else ""


def _without_calls(content: bytes) -> bytes:
    """Return a tokenizer.json without the settings of its last call, as canonical JSON; other content unchanged."""
    if (content_object := _parse_object(content)) is None:
        return content
    settings = {name: value for name, value in content_object.items() if name not in CALL_SETTINGS}
    return json.dumps(settings, sort_keys=True).encode()


def _splitting_settings(content: bytes) -> bytes:
    """Return the settings of a tokenizer_config.json that affect a text's pieces, with special tokens as text."""
    all_settings = _parse_object(content) or {}
    settings = {name: all_settings[name] for name in SPLITTING_SETTINGS if all_settings.get(name) is not None}
    texts = {name: value.get("content") if isinstance(value, dict) else value for name, value in settings.items()}
    return json.dumps(texts, sort_keys=True).encode()


def _parse_object(content: bytes) -> dict[str, Any] | None:
    """Parse a JSON object; None if the content is not one."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def check_own_tokenizer(run: Run) -> list[Fault]:
    """Return a fault if the run's tokenizer cannot be read or is not the one used in pretraining."""
    try:
        load_tokenizer(run)
    except (BrokenRun, TokenizerMismatch) as reason:
        return [Fault((), "tokenizer", str(reason))]
    return []


def find_exchanged_folders(checkpoints: Iterable[Checkpoint]) -> list[Fault]:
    """Return a fault for each folder whose name and manifest have different steps."""
    return [
        Fault(
            (checkpoint.step,),
            "swapped",
            f"The folder {printable(checkpoint.path.name)} has the manifest of the checkpoint at "
            f"{name_step(checkpoint.step, checkpoint.run.step_unit)}; name it step{checkpoint.step}, or copy both "
            "again from their source.",
        )
        for checkpoint in checkpoints
        if steps_in_name(checkpoint.path.name) not in ((), (checkpoint.step,))
    ]


def steps_in_name(name: str) -> tuple[int, ...]:
    """Return (step,) for a folder named step{N}, else ()."""
    number = name.removeprefix("step")
    return (int(number),) if number != name and number.isdecimal() and len(number) < 19 else ()


def _most_common(values: Mapping[Checkpoint, str]) -> str:
    return Counter(values.values()).most_common(1)[0][0] if values else ""
