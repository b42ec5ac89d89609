"""What data a metric's results are of: noted in sources.json before the first, compared at each, never two at once."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from embryo_core import runs
from embryo_core.errors import OtherData, ResultsError
from embryo_core.types import Run

OPTIONS = ("sha256", "limit", "protocol", "learning_rate", "mnli_sha256")  # that tell fine-tunings apart
NOTHING = (None,) * len(OPTIONS)
Identity = Mapping[str, Any]  # data (a name), sha256 of their content, limit, and the options that tell results apart


def read_sources(run: Run) -> dict[str, dict[str, Any]]:
    """What data each metric was computed on, as noted by `begin`; empty where nothing was. Raises ResultsError."""
    path = run.results / "sources.json"
    if not os.path.lexists(path):
        return {}
    # Twice: `Shown` checks the types of what pages show and drops the rest, which `Sources` keeps.
    runs.read_json(path, run.results, runs.Shown, ResultsError)
    return runs.read_json(path, run.results, runs.Sources, ResultsError)


def check_identity(run: Run, metric: str, identity: Identity) -> None:
    """Raise OtherData where what is noted of a metric's data is not this; the name of the data does not matter.

    A writer asks this under its lock, so that of two evaluations with different data only one goes on.
    """
    noted = read_sources(run).get(metric, {})
    if any(noted.get(key) != value for key, value in identity.items() if key != "data"):
        raise OtherData(
            f"Results of '{metric}' for run '{run.name}' are of {_shown(noted, identity)}, received "
            f"{_shown(identity, identity)}; give the same data, or --overwrite to replace them."
        )


def of_other_data(names: Iterable[str], sources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Of evaluations of one task, "finetuning:<task>:<seed>", those that are never averaged with its first one.

    Their data, protocol or learning rate are other ones by what is noted of them in `sources`, or not noted.
    """
    by_task: dict[str, dict[str, tuple]] = {}
    for name in sorted(names, key=lambda name: (len(name), name)):
        noted = sources.get(name, {})
        by_task.setdefault(name.rpartition(":")[0], {})[name] = tuple(noted.get(key) for key in OPTIONS)
    found = []
    for identities in by_task.values():
        first = next((one for one in identities.values() if any(one)), NOTHING)
        found += [name for name, one in identities.items() if one != first]
    return found


def _shown(noted: Mapping[str, Any], identity: Identity) -> str:
    """The data in words; keys of `identity` beyond name, hash and limit are options."""
    if not noted:
        return "unknown data"
    limit = "no limit" if noted.get("limit") is None else f"limit {noted['limit']}"
    own = [f"{noted[key]} {key}" for key in identity if key not in ("data", "sha256", "limit") and key in noted]
    return f"{noted.get('data', 'data')} (sha256 {str(noted.get('sha256'))[:12]}..., {', '.join([limit, *own])})"
