"""Read the trainer_state.json of transformers' Trainer as a run's log and counts."""

import json
import math
import re
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.json import Decoder

from embryo_core import runs
from embryo_core.engine.capabilities import is_decoder
from embryo_core.errors import BrokenTrainerState
from embryo_core.runs.log import read_text, spread
from embryo_core.runs.schema import TrainerState
from embryo_core.runs.trust import refusal
from embryo_core.runs.value_types import Nested2
from embryo_core.sources.source_series import SourceCheckpoint
from embryo_core.types import Run
from embryo_core.words import quantity

STATE_FILE = "trainer_state.json"
TRAIN_FIELDS = {
    "loss": "loss",
    "learning_rate": "learning_rate",
    "grad_norm": "gradient_norm",
}  # the Trainer's names -> ours
HELDOUT_FIELDS = {"eval_loss": "loss", "eval_accuracy": "accuracy"}
# Python writes NaN and Infinity, although JSON lacks them. A text (with or without an end) is passed over without
# going back, so that time is linear and memory constant.
NON_FINITE = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|(NaN|-?Infinity)')
Content = TypeVar("Content")


class LogEntry(Struct, frozen=True):
    """The numbers of an entry of the Trainer's log that a run's log has too."""

    step: Nested2 | None = None
    loss: Nested2 | UnsetType = UNSET
    learning_rate: Nested2 | UnsetType = UNSET
    grad_norm: Nested2 | UnsetType = UNSET
    eval_loss: Nested2 | UnsetType = UNSET
    eval_accuracy: Nested2 | UnsetType = UNSET

    def noted(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the values that the entry has, by these names."""
        return {name: value for name in names if (value := getattr(self, name)) is not UNSET}


class TrainerLog(Struct, frozen=True):
    """trainer_state.json: the log of a Trainer."""

    log_history: Annotated[list[LogEntry], Meta(max_length=1_000_000)] = []


# A file has up to 256 MB. Decoders skip what their type lacks, so the counts are read without the log in memory.
COUNTS_DECODER, LOG_DECODER = Decoder(TrainerState, strict=False), Decoder(TrainerLog, strict=False)


def read_state(folder: Path) -> TrainerState | None:
    """Read the counts in the Trainer's state of a checkpoint; None if it is missing. Raises BrokenTrainerState."""
    return _read(folder, COUNTS_DECODER)


def read_log(folder: Path) -> list[LogEntry] | None:
    """Read the log in the Trainer's state of a checkpoint; None if it is missing. Raises BrokenTrainerState."""
    log = _read(folder, LOG_DECODER)
    return log.log_history if log else None


def _read(folder: Path, decoder: Decoder[Content]) -> Content | None:
    """Read the Trainer's state in a checkpoint's folder; None if the file is missing. Raises BrokenTrainerState.

    NaN and Infinity are read as empty texts, and numbers in texts are parsed.
    """
    path = next((path for name in (STATE_FILE, f"{STATE_FILE}.gz") if (path := folder / name).is_file()), None)
    if path is None:
        return None
    content = read_text(path, path.resolve().parent, BrokenTrainerState)
    has_non_finite = b"NaN" in content or b"Infinity" in content
    try:
        return decoder.decode(_as_texts(content) if has_non_finite else content)
    except (ValueError, RecursionError) as reason:
        raise refusal(path, f"is not valid: {reason}", BrokenTrainerState) from None


def _as_texts(content: bytes) -> bytearray:
    """Return JSON with an empty text in place of each NaN and Infinity."""
    changed = bytearray(content)
    for token in NON_FINITE.finditer(content):
        if token[1]:
            changed[slice(*token.span())] = b'""'.ljust(len(token[1]))
    return changed


def log_rows(log: Iterable[LogEntry], objective: str, alone: bool) -> Iterable[dict[str, Any]]:
    """Yield rows of log.jsonl for an objective (masked_lm, next_token).

    If the model trains `alone` on this objective, its loss is also the objective's loss. Numbers that are not finite
    become None, which is a gap in the curve.
    """
    for entry in log:
        step = _number(entry.step)
        for split, names in (("train", TRAIN_FIELDS), ("heldout", HELDOUT_FIELDS)):
            row = {names[key]: _number(value) for key, value in entry.noted(names).items()}
            if not row or step is None or step % 1:
                continue
            if "loss" in row and alone:
                row[f"{objective}_loss"] = row["loss"]
            if "accuracy" in row:
                row[f"{objective}_accuracy"] = row.pop("accuracy")
            yield {"split": split, "step": int(step), **row}


def odd_numbers(log: Iterable[LogEntry]) -> str:
    """Return a sentence on numbers of the log that are not finite or are stored as text; "" without such numbers."""
    values = [value for entry in log for value in entry.noted((*TRAIN_FIELDS, *HELDOUT_FIELDS)).values()]
    gaps = sum(_number(value) is None for value in values)
    texts = sum(isinstance(value, str) and _number(value) is not None for value in values)
    kinds = (gaps, "not finite, and gaps of the curves"), (texts, "text, and read as numbers")
    described = " and ".join(
        f"{quantity(count, 'number')} that {'is' if count == 1 else 'are'} {kind}" for count, kind in kinds if count
    )
    return f"The trainer_state.json has {described}." if described else ""


def _number(value: Any) -> float | None:
    """Return a number, or text with a number, as float; None if it is neither, or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value) if math.isfinite(float(value)) else None
    except (ValueError, OverflowError):
        return None


def save_interval(checkpoint: SourceCheckpoint) -> int:
    """Return the Trainer's number of updates between checkpoints; 0 if unknown."""
    state = trainer_state(checkpoint)
    return int(state.save_steps) if checkpoint.counts.step == state.global_step else 0


def trainer_state(checkpoint: SourceCheckpoint) -> TrainerState:
    """Return the Trainer's state beside a checkpoint; an empty state if it is missing or cannot be read."""
    try:
        return (read_state(checkpoint.folder) if checkpoint.folder else None) or TrainerState()
    except BrokenTrainerState:  # `write_log` reports it
        return TrainerState()


def write_log(added: list[SourceCheckpoint], old: Run | None, path: Path) -> tuple[list[str], str]:
    """Write log.jsonl from the Trainer's state of the last checkpoint of each phase, which includes the phase's log.

    Rows of the earlier run `old` for other steps are kept. A long log is thinned to as many rows as are ever read.
    Return a sentence for each state that cannot be read, and a sentence on unusual numbers or "".
    """
    rows, troubles, entries = [], [], []
    end = math.inf  # step at which the later phase began
    for checkpoint in reversed(added):
        # A Trainer's log counts updates, so it fits only checkpoints counted in updates.
        if checkpoint.folder is None or checkpoint.counts.step is None:
            continue
        try:
            state = read_state(checkpoint.folder)
            # A Trainer counts updates from the start of its phase.
            start = max(checkpoint.step - state.global_step, 0) if state else 0
            log = read_log(checkpoint.folder) if state and start < end else None
        except BrokenTrainerState as reason:
            troubles.append(str(reason))
            continue
        if log is not None:
            decoder, name = is_decoder(checkpoint.model_class), checkpoint.model_class.name
            objective, alone = ("next_token", True) if decoder else ("masked_lm", name.endswith("ForMaskedLM"))
            phase_rows = [row | {"step": row["step"] + start} for row in log_rows(log, objective, alone)]
            rows += [row for row in phase_rows if row["step"] <= end]
            entries += log
            end = start
        if end == 0:
            break
    first, last = min((row["step"] for row in rows), default=0), max((row["step"] for row in rows), default=-1)
    earlier = map(runs.parse_row, runs.read_lines(old.path / "log.jsonl")) if old else ()
    rows += [row for row in earlier if row and not first <= row["step"] <= last]
    rows.sort(key=itemgetter("step"))
    rows = [row for split in ("train", "heldout") for row in spread([row for row in rows if row["split"] == split])]
    if rows:
        rows.sort(key=itemgetter("step"))
        runs.write_lines(path, (json.dumps(row).encode() for row in rows))
    return troubles, odd_numbers(entries)
