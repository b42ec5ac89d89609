"""Whether the files of a checkpoint are those of its manifest, and what its config.json says."""

from functools import lru_cache
from pathlib import Path

from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs.architecture import Architecture
from embryo_core.runs.manifests import MOST, State, read_manifest, state_of, without_weights
from embryo_core.runs.reading import Content, digest, read_json, refusal
from embryo_core.runs.schema import ModelClass
from embryo_core.runs.weight_files import WEIGHTS, check_weights, most_bytes, weights_file
from embryo_core.types import Checkpoint

UNCHANGEABLE = (Architecture, ModelClass)  # what may be kept of a config.json


def read_config(checkpoint: Checkpoint, kind: type[Content]) -> Content:
    """What of a checkpoint's config.json the `kind` names (ModelClass, Architecture, or all: dict[str, Any]).

    What cannot be changed is parsed again only when the file is another: a model that is loaded asks ten times. Raises
    BrokenCheckpoint.
    """
    path, within = checkpoint.path / "config.json", checkpoint.run.path
    if kind in UNCHANGEABLE:
        return _parse_config(path, within, kind, state_of(str(path)))
    return read_json(path, within, kind, BrokenCheckpoint)


@lru_cache(maxsize=MOST)
def _parse_config(path: Path, within: Path, kind: type[Content], _state: State) -> Content:
    return read_json(path, within, kind, BrokenCheckpoint)


def verify(checkpoint: Checkpoint) -> None:
    """Raise BrokenCheckpoint unless every file of the manifest is there with its sha256, and tensors fit config.json.

    Raises MissingWeights where the manifest says that the weights were removed. Of the weights only the header is
    parsed: no memory is taken for tensors that config.json has no room for.
    """
    run = checkpoint.run.path
    sizes = read_config(checkpoint, Architecture)
    manifest, _ = read_manifest(checkpoint.path, run)
    if manifest.removed:
        raise without_weights(checkpoint)
    weights, within = weights_file(checkpoint)
    expected = {checkpoint.path / name: sha256 for name, sha256 in manifest.sha256.items()}
    if manifest.weights:
        expected[weights] = manifest.weights.sha256
    elif weights not in expected:
        raise refusal(checkpoint.path / "manifest.json", f"does not name {weights.name}", BrokenCheckpoint)
    check_weights(weights, within, sizes)  # quicker than the hash of a file of holes
    for path, sha256_ in expected.items():
        found = digest(path, within if path == weights else run, BrokenCheckpoint, _limit(path, weights, sizes))
        if found != sha256_:
            raise refusal(path, "is not the file in the manifest (truncated or changed)", BrokenCheckpoint)


def _limit(path: Path, weights: Path, sizes: Architecture) -> int | None:
    """Bytes that a file may have; None: those of its name. Of two files of weights one is not read, but is hashed."""
    return most_bytes(sizes) if path == weights or path.name in WEIGHTS else None
