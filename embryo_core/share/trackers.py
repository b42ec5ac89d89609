"""Export a run's scores to other tools: TensorBoard events, CSV or parquet (docs/python.md)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from embryo_core import results, runs
from embryo_core.errors import ResultsError
from embryo_core.types import Run

FORMATS = ("tensorboard", "csv", "parquet")
EVENT_VERSION = "brain.Event:2"  # version of the event format
NOT_EMPTY = "already holds files; name a folder that is empty or does not exist."


def export(run: Run, form: str, folder: Path) -> Path:
    """Write the scores of a run to a folder; return the file, or for TensorBoard the folder.

    TensorBoard gets a scalar at each step for each metric, layer and group, such as `mask_prediction/noun`, with the
    time at which the step was trained if the log has it; W&B and trackio import these files. CSV and parquet have the
    rows of `results.read_scores`. Raises ResultsError if there are no scores, if the folder is not empty or cannot be
    written, or if TensorBoard is not installed.
    """
    scores = results.read_scores(run)
    if scores.empty:
        raise ResultsError(
            f"Run '{run.name}' has no scores yet; compute them with: python -m embryo_core evaluate {run.name}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ResultsError(f"{folder} {NOT_EMPTY}")
        if form == "tensorboard":
            return _write_events(run, scores, folder)
        path = folder / f"{run.name}.{form}"
        if form == "csv":
            scores.to_csv(path, index=False)
        else:
            results.write_foreign(scores, path)
        return path
    except OSError as reason:
        raise ResultsError(f"{folder} cannot be written ({reason.strerror}); name another folder.") from None


def scalars(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each curve's tag, in plain characters, with its rows (step, value)."""
    for (metric, layer, group), rows in scores.groupby(["metric", "layer", "group"], sort=False, dropna=False):
        tag_parts = [
            metric,
            *([f"layer{int(layer)}"] if pd.notna(layer) else []),
            *([group] if pd.notna(group) else []),
        ]
        yield re.sub(r"[^\w\-./]", "_", "/".join(map(str, tag_parts))), rows.sort_values("step")[["step", "value"]]


def _write_events(run: Run, scores: pd.DataFrame, folder: Path) -> Path:
    """Write the scores as one file of TensorBoard events; return the folder."""
    try:  # these parts of TensorBoard import no TensorFlow
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        raise ResultsError("TensorBoard's files need tensorboard: pip install tensorboard.") from None
    times = {row["step"]: row["time"] for row in runs.read_log(run) if row.get("time")}
    with (folder / f"events.out.tfevents.0.{run.name}").open("wb") as file:
        records = RecordWriter(file)
        records.write(Event(file_version=EVENT_VERSION).SerializeToString())
        for tag, rows in scalars(scores):
            for step, value in rows.itertuples(index=False):
                summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
                event = Event(wall_time=times.get(step, 0.0), step=step, summary=summary)
                records.write(event.SerializeToString())
    return folder
