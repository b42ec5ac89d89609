"""Trusted runs: the hashes of their files, in a list outside the runs.

`python -m embryo_core trust RUN` writes the list. A server with EMBRYO_TRUSTED=listed shows only runs whose files match
the list, by name and content; without it every run is shown. The hashes of weights are in the manifests, and are
checked when weights are loaded (`verify`). Names, not paths, identify runs, so that the list can be copied to a host.
"""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from embryo_core.errors import BrokenRun
from embryo_core.runs.atomic_files import UNFINISHED
from embryo_core.runs.checkpoint_files import WEIGHTS
from embryo_core.runs.pointers import add_to_list, read_list
from embryo_core.runs.snapshot import read_once
from embryo_core.runs.trust import State, digest, own_entries, state_from
from embryo_core.runs.value_types import Sha256, Text
from embryo_core.types import Run

MAX_FILE_BYTES = 2**31  # largest size of a file
# not hashed, since no page reads the state of pretraining, and manifests have the hashes of weights
NOT_SHOWN = ("state", *WEIGHTS)
Hashes = dict[str, str]  # path below the root -> hash
TRUSTED_FILE = "trusted.json"
Trusted = Annotated[dict[Text, dict[Text, Sha256]], Meta(max_length=10_000)]
States = tuple[tuple[str, State], ...]


def trust_files(run: Run) -> tuple[Path, int]:
    """Record the hashes of a run's files; return the list's path and their number. Raises BrokenRun, BrokenUserList."""
    root, states = run.path.parents[1], _states(run)
    return add_to_list(TRUSTED_FILE, Trusted, {run.name: _hashes(root, states)}), len(states)


def check_trusted(run: Run) -> Run:
    """Return the run. Raises BrokenRun if only trusted runs are shown, and its files are not those of the list."""
    if os.environ.get("EMBRYO_TRUSTED") != "listed":
        return run
    # read before hashing, since a run that is not listed need not be hashed
    expected = read_list(TRUSTED_FILE, Trusted).get(run.name, {})
    hashes = _hashes(run.path.parents[1], _states(run)) if expected else {}
    if hashes != expected or not expected:
        differing = min((name for name, _ in hashes.items() ^ expected.items()), default="")
        why = f"{differing} is not the listed file" if expected else "it is not in the list of trusted runs"
        raise BrokenRun(
            f"Run '{run.name}' is not shown: {why}; if you trust the run, list it with: "
            f"python -m embryo_core trust {run.name}"
        )
    return run


@read_once
def _states(run: Run) -> States:
    """Return the path and state of each file of a run and of its results. Raises BrokenRun for a link."""
    return tuple(sorted(file for folder in (run.path, run.results) for file in _walk(folder)))


def _walk(folder: Path) -> Iterator[tuple[str, State]]:
    for entry in own_entries(folder, BrokenRun):
        if entry.name in NOT_SHOWN or entry.name.endswith(UNFINISHED):
            continue
        if entry.is_dir():
            yield from _walk(Path(entry.path))
        elif entry.is_file():
            yield entry.path, state_from(entry.stat())


@lru_cache(maxsize=64)
def _hashes(root: Path, states: States) -> Hashes:
    """Return the hash of each file, cached until one of them changes."""
    return {os.path.relpath(path, root): digest(Path(path), root, BrokenRun, MAX_FILE_BYTES) for path, _ in states}
