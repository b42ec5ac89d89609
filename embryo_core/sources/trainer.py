"""Read the trainer_state.json of transformers' Trainer as a run's log and counts."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import convert

from embryo_core.errors import BrokenTrainerState
from embryo_core.runs import read_bytes
from embryo_core.runs.schema import TrainerState
from embryo_core.runs.trust import refusal

STATE = "trainer_state.json"
TRAIN = {"loss": "loss", "learning_rate": "learning_rate", "grad_norm": "gradient_norm"}  # our names by the Trainer's
HELDOUT = {"eval_loss": "loss", "eval_accuracy": "masked_lm_accuracy"}


def read_state(folder: Path) -> TrainerState | None:
    """Return the state in the folder of a checkpoint; None if there is none. Raises BrokenTrainerState.

    Python writes a diverged loss as NaN or Infinity, which is not JSON; it is read as None.
    """
    path = folder / STATE
    if not path.is_file():
        return None
    content = read_bytes(path, path.resolve().parent, BrokenTrainerState)
    try:
        return convert(json.loads(content, parse_constant=lambda _: None), TrainerState)
    except (ValueError, RecursionError) as reason:
        raise refusal(path, f"is not valid: {reason}", BrokenTrainerState) from None


def log_rows(state: TrainerState, masked_words_alone: bool) -> Iterable[dict[str, Any]]:
    """Yield rows of log.jsonl; with `masked_words_alone` the loss is that of masked words, not a sum of objectives."""
    for noted in state.log_history:
        for split, names in (("train", TRAIN), ("heldout", HELDOUT)):
            row = {name: noted[own] for own, name in names.items() if _is_number(noted.get(own))}
            if not row or not isinstance(noted.get("step"), int):
                continue
            if "loss" in row and masked_words_alone:
                row["masked_lm_loss"] = row["loss"]
            yield {"split": split, "step": noted["step"], **row}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
