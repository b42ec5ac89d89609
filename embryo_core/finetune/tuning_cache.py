"""Files that fine-tuning keeps in the data folder's cache until they are used: weights after MNLI, and rate trials."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from embryo_core.errors import ResultsError
from embryo_core.finetune.task_specs import TuningSettings
from embryo_core.runs import own_folder
from embryo_core.types import Checkpoint, Run

WEIGHTS = re.compile(r"step(\d+)-seed(\d+)-[0-9a-f]{12}\.safetensors")


def mnli_file(checkpoint: Checkpoint, seed: int, settings: TuningSettings, identity: Mapping[str, Any]) -> Path:
    """Return the file of a checkpoint's weights after MNLI, kept until the tasks that start from them are done."""
    key = _fingerprint(checkpoint, settings, identity)
    return cache_folder(checkpoint.run) / f"step{checkpoint.step}-seed{seed}-{key}.safetensors"


def mnli_files(run: Run) -> list[tuple[tuple[int, int], Path]]:
    """List the files of weights after MNLI, each with its step and seed; half-written files are included."""
    files = [(WEIGHTS.match(file.name), file) for file in sorted(cache_folder(run).glob("step*"))]
    return [((int(found[1]), int(found[2])), file) for found, file in files if found]


def is_readable(weights: Path) -> bool:
    """Return whether a file of weights is complete by its header and size; a damaged one is removed."""
    try:
        with safe_open(weights, "numpy"):
            return True
    except (OSError, SafetensorError):
        weights.unlink(missing_ok=True)
        return False


def trial_file(checkpoint: Checkpoint, settings: TuningSettings, identity: Mapping[str, Any]) -> Path:
    """Return the file that keeps the result of one tried learning rate until one is chosen."""
    return cache_folder(checkpoint.run) / f"rate-{_fingerprint(checkpoint, settings, identity)}.json"


def cache_folder(run: Run) -> Path:
    """Return the folder of a run's files. Raises ResultsError if it is a link, or contains one."""
    path = run.path.parents[1] / "cache" / "finetuning" / run.name
    return own_folder(path, path, ResultsError)


def _fingerprint(checkpoint: Checkpoint, settings: TuningSettings, identity: Mapping[str, Any]) -> str:
    key = json.dumps([checkpoint.written, str(settings), sorted(identity.items())])
    return hashlib.sha256(key.encode()).hexdigest()[:12]
