"""Refuses findings that are no measurement before any is written: not finite, counted on nothing, or given twice."""

import math
from typing import Any

import numpy as np

from embryo_core.errors import ResultsError
from embryo_core.results.tables import TABLES
from embryo_core.types import (
    Answer,
    AttentionMap,
    Checkpoint,
    ClozeAnswer,
    Findings,
    ProbeCurve,
    Score,
    SpanAnswer,
    TaskScore,
    TuningPoint,
    WordCount,
)


def check(checkpoint: Checkpoint, metric: str, findings: Findings) -> None:
    """Raise ResultsError for no rows at all, one that is no measurement, or two alike."""
    evaluated = f"Metric '{metric}' at step {checkpoint.step} of run '{checkpoint.run.name}'"
    if not any(getattr(findings, table.name) for table in TABLES):
        raise ResultsError(f"{evaluated} found nothing, so nothing was written; check the data it was given.")
    for table in TABLES:
        seen = set()
        for row in getattr(findings, table.name):
            if not _is_measurement(row):
                raise ResultsError(f"{evaluated} gave {_shown(row)}, which is no measurement; nothing was written.")
            key = tuple(getattr(row, name) for name in table.key if name != "step")
            if key in seen:
                raise ResultsError(f"{evaluated} gave two rows of {table.name} for {key}; nothing was written.")
            seen.add(key)


def _is_measurement(row: Any) -> bool:
    match row:
        case Score():
            return row.n > 0 and math.isfinite(row.value)
        case WordCount():
            return row.n > 0 and 0 <= row.correct <= row.n
        case ClozeAnswer():
            return row.rank > 0 and math.isfinite(row.probability) and math.isfinite(row.prediction_probability)
        case ProbeCurve():
            return row.iteration >= 0 and math.isfinite(row.train_loss) and 0 <= row.dev_f1 <= 1
        case TaskScore():
            return row.n > 0 and -1 <= row.value <= 1
        case TuningPoint():
            return row.update > 0 and math.isfinite(row.train_loss) and -1 <= row.dev_score <= 1
        case Answer():
            return row.example >= 0 and math.isfinite(row.gold) and math.isfinite(row.answer)
        case SpanAnswer():
            return 0 <= row.start <= row.end and 0 <= row.exact <= 1 and 0 <= row.f1 <= 1
        case AttentionMap():
            square = row.weights.ndim == 2 and row.weights.shape[0] == row.weights.shape[1] > 0
            with np.errstate(over="ignore"):  # weights are stored as float16
                return bool(row.sentences > 0 and square and np.isfinite(row.weights.astype(np.float16)).all())


def _shown(row: Any) -> str:
    values = {name: value for name, value in vars(row).items() if name != "metric"}
    if "weights" in values:
        shape = "x".join(map(str, row.weights.shape))
        values["weights"] = f"{shape} from {np.min(row.weights, initial=0):g} to {np.max(row.weights, initial=0):g}"
    return f"{type(row).__name__} with " + ", ".join(f"{name} {value}" for name, value in values.items())
