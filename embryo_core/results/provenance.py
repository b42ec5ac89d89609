"""The provenance of results: the data of each metric, recorded in sources.json and never mixed."""

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from embryo_core.errors import DatasetMismatch, ResultsError
from embryo_core.runs.schema import DataRecords, Sources
from embryo_core.runs.trust import parse_json, read_bytes
from embryo_core.types import Run
from embryo_core.words import quantity

OPTIONS = ("sha256", "limit", "protocol", "learning_rate", "mnli_sha256")  # options that distinguish fine-tunings
NO_OPTIONS = (None,) * len(OPTIONS)
DATA_OPTIONS = ("limit", "protocol", "pll", "as-written", "occurrences")  # options that distinguish other metrics' data
DatasetId = Mapping[str, Any]  # data (a name), sha256 of its content, limit, and options that change the results


def read_sources(run: Run) -> dict[str, dict[str, Any]]:
    """Return the recorded data of each metric (see `note_dataset`). Raises ResultsError."""
    path = run.results / "sources.json"
    if not os.path.lexists(path):
        return {}
    content = read_bytes(path, run.results, ResultsError)
    parse_json(content, path, DataRecords, ResultsError)  # checks the fields that pages show, and drops the others
    return parse_json(content, path, Sources, ResultsError)


def data_options(run: Run, metric: str) -> dict[str, Any]:
    """Return what identifies the data of a metric's results: SHA-256 of files, and options that are on.

    Empty if nothing is recorded. Raises ResultsError.
    """
    noted = read_sources(run).get(metric, {})
    return {key: value for key, value in noted.items() if value and (key.endswith("sha256") or key in DATA_OPTIONS)}


def check_dataset(run: Run, metric: str, dataset: DatasetId, lasting: Collection[int] = ()) -> None:
    """Raise DatasetMismatch if a metric's results come from another data set; its name does not matter.

    `lasting` are steps whose results cannot be computed again; if there are any, the message does not offer
    --overwrite. An option that is off equals one that is not recorded, as in results that are older than the option. A
    writer calls this while it holds the lock, so that of two evaluations with different data only one continues.
    """
    record = read_sources(run).get(metric, {})
    if any((record.get(key) or None) != (value or None) for key, value in dataset.items() if key != "data"):
        remedy = "or --overwrite to replace them"
        if lasting:
            remedy = f"since those of {quantity(len(lasting), 'step')} without weights cannot be computed again"
        raise DatasetMismatch(
            f"Results of '{metric}' for run '{run.name}' are of {_describe(record, dataset)}, received "
            f"{_describe(dataset, dataset)}; give the same data, {remedy}."
        )


def incomparable_evaluations(names: Iterable[str], sources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the evaluations "finetuning:<task>:<seed>" that must not be averaged with the first one of their task.

    According to `sources` they differ from the first in data, protocol or learning rate, or these are unknown.
    """
    by_task: dict[str, dict[str, tuple]] = {}
    for name in sorted(names, key=lambda name: (len(name), name)):
        record = sources.get(name, {})
        by_task.setdefault(name.rpartition(":")[0], {})[name] = tuple(record.get(key) for key in OPTIONS)
    incomparable = []
    for options in by_task.values():
        first = next((stored_options for stored_options in options.values() if any(stored_options)), NO_OPTIONS)
        incomparable += [name for name, stored_options in options.items() if stored_options != first]
    return incomparable


def _describe(record: Mapping[str, Any], dataset: DatasetId) -> str:
    if not record:
        return "unknown data"
    limit = "no limit" if record.get("limit") is None else f"limit {record['limit']}"
    on = [key for key in dataset if key not in ("data", "sha256", "limit") and record.get(key)]
    options = [key if record[key] is True else f"{record[key]} {key}" for key in on]
    return f"{record.get('data', 'data')} (sha256 {str(record.get('sha256'))[:12]}..., {', '.join([limit, *options])})"
