"""What is kept beside the results until the work that needs it is done: weights after MNLI, and rates tried."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from embryo_core.errors import ResultsError
from embryo_core.finetune.protocols import Settings
from embryo_core.runs import own_folder
from embryo_core.types import Checkpoint, Run

WEIGHTS = re.compile(r"step(\d+)-seed(\d+)-[0-9a-f]{12}\.safetensors")


def weights_file(checkpoint: Checkpoint, seed: int, settings: Settings, identity: Mapping[str, Any]) -> Path:
    """Where the weights of a checkpoint after MNLI are kept, until the tasks that begin from them are done."""
    of = _fingerprint(checkpoint, settings, identity)
    return folder(checkpoint.run) / f"step{checkpoint.step}-seed{seed}-{of}.safetensors"


def kept_weights(run: Run) -> list[tuple[tuple[int, int], Path]]:
    """The step and seed of each file of weights after MNLI that is there, half written ones included."""
    files = [(WEIGHTS.match(file.name), file) for file in sorted(folder(run).glob("step*"))]
    return [((int(found[1]), int(found[2])), file) for found, file in files if found]


def readable(weights: Path) -> bool:
    """Whether a file of weights is there and whole, as far as its header and size tell; one that is not is removed."""
    try:
        with safe_open(weights, "numpy"):
            return True
    except (OSError, SafetensorError):
        weights.unlink(missing_ok=True)
        return False


def trial_file(checkpoint: Checkpoint, settings: Settings, identity: Mapping[str, Any]) -> Path:
    """Where it is kept what a learning rate came to, until one is chosen."""
    return folder(checkpoint.run) / f"rate-{_fingerprint(checkpoint, settings, identity)}.json"


def folder(run: Run) -> Path:
    """Return the folder of a run for such files. Raise ResultsError if it is a link, or holds one."""
    path = run.path.parents[1] / "cache" / "finetuning" / run.name
    return own_folder(path, path, ResultsError)


def _fingerprint(checkpoint: Checkpoint, settings: Settings, identity: Mapping[str, Any]) -> str:
    what = json.dumps([checkpoint.written, str(settings), sorted(identity.items())])
    return hashlib.sha256(what.encode()).hexdigest()[:12]
