"""What transformers' Trainer noted down, trainer_state.json, as a run's log and counts."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import convert

from embryo_core.errors import BrokenTrainerState
from embryo_core.runs import read_bytes
from embryo_core.runs.reading import refusal
from embryo_core.runs.schema import TrainerState

TRAIN = {"loss": "loss", "learning_rate": "learning_rate", "grad_norm": "gradient_norm"}  # their names here, by theirs
HELDOUT = {"eval_loss": "loss", "eval_accuracy": "masked_lm_accuracy"}


def read_state(folder: Path) -> TrainerState | None:
    """The state in the folder of a checkpoint; None where there is none. Raises BrokenTrainerState.

    Python writes a loss that ran away as NaN or Infinity, which is no JSON; here it is no number.
    """
    path = folder / "trainer_state.json"
    if not path.is_file():
        return None
    content = read_bytes(path, path.resolve().parent, BrokenTrainerState)
    try:
        return convert(json.loads(content, parse_constant=lambda _: None), TrainerState)
    except (ValueError, RecursionError) as reason:
        raise refusal(path, f"is not valid: {reason}", BrokenTrainerState) from None


def log_rows(state: TrainerState, masked_words_alone: bool) -> Iterable[dict[str, Any]]:
    """Rows of log.jsonl; `masked_words_alone` says that the loss is the masked words' and no sum of several."""
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
