"""Read the names of a checkpoint's tensors without torch, to find its heads and the file that has them."""

import io
import pickletools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO
from zipfile import ZipFile, is_zipfile

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint, MissingWeights
from embryo_core.families import ENCODERS
from embryo_core.runs.checkpoint_files import MAX_PICKLED, check_weights
from embryo_core.runs.manifests import MAX_CHECKPOINTS
from embryo_core.runs.trust import state_of
from embryo_core.types import Checkpoint

Opcodes = Iterator[tuple[pickletools.OpcodeInfo, object]]
MAX_OPCODES = 2**22  # opcodes that are read of a pickle; a tensor takes about 40
LEGACY_PICKLES = 5  # pickles at the start of a file that torch wrote before version 1.6
HEAD_NAME_PATTERNS = {  # patterns of the names of a head's tensors, without the prefixes of training wrappers
    "masked_words": r"(cls\.predictions|lm_predictions|lm_head|predictions|generator_predictions|vocab_transform"
    r"|head\.(dense|linear1|decoder)|decoder\.bias)\b",
    "replaced_tokens": r"discriminator_predictions\b",
}
HEAD_ONLY_PARTS = {"masked_words": "dense", "replaced_tokens": "detector_dense"}  # parts that only a head has
HEAD_REGEXES = {
    capability: re.compile(rf"(module\.|_orig_mod\.)*{names}") for capability, names in HEAD_NAME_PATTERNS.items()
}


def heads_stored(checkpoint: Checkpoint) -> frozenset[str] | None:
    """Return the capabilities of the heads in an encoder's weights; None if the weights are not on this machine."""
    try:
        architecture = runs.read_config(checkpoint, runs.Architecture)
        of_files = [heads_of(path, root, architecture) for path, root in runs.weights_files(checkpoint)]
        return None if None in of_files else frozenset[str]().union(*filter(None, of_files))
    except (BrokenCheckpoint, MissingWeights):  # the error is reported on loading
        return None


def first_with_heads(files: Sequence[Path], config: Path) -> Path:
    """Return the first file with a head among files of one model's weights, or simply the first if none has one."""
    try:
        architecture = runs.read_json(config, config.resolve().parent, runs.Architecture, BrokenCheckpoint)
    except BrokenCheckpoint:  # the error is reported when the checkpoint is added
        return files[0]
    paths = {file: file.resolve() for file in files}
    return next((file for file, path in paths.items() if heads_of(path, path.parent, architecture)), files[0])


def heads_of(path: Path, root: Path, architecture: runs.Architecture) -> frozenset[str] | None:
    """Return the capabilities of the heads in a file of weights; None if it is missing or cannot be read."""
    try:
        return _heads_of(path, root, architecture, state_of(path, BrokenCheckpoint))
    except Exception:  # noqa: BLE001, a damaged file may fail anywhere
        return None


@lru_cache(maxsize=MAX_CHECKPOINTS)
def _heads_of(path: Path, root: Path, architecture: runs.Architecture, _state: object) -> frozenset[str]:
    """Return the result of `heads_of`, cached per `_state` of the file."""
    tensors = check_weights(path, root, architecture)
    names = _texts(path) if tensors is None else tensors
    layout = ENCODERS.get(architecture.model_type)
    own_heads = {capability: layout.names.get(part) for capability, part in HEAD_ONLY_PARTS.items()} if layout else {}
    return frozenset(
        capability
        for capability, head in HEAD_REGEXES.items()
        if any(head.match(name) or name.startswith(own_heads.get(capability) or "\0") for name in names)
    )


def _texts(path: Path) -> list[str]:
    """Return all strings in the pickles of a file, including the names of its tensors, without unpickling."""
    with path.open("rb") as file:
        return [text for opcodes in pickles(file) for _, text in opcodes if isinstance(text, str)]


def pickles(file: IO[bytes]) -> Iterator[Opcodes]:
    """Yield the opcodes of each pickle in a file, with their arguments."""
    if is_zipfile(file):
        with ZipFile(file) as archive:
            for member in archive.infolist():
                if member.filename.endswith(".pkl"):
                    with archive.open(member) as stream:
                        yield _opcodes(stream)
    else:
        file.seek(0)
        start = io.BytesIO(file.read(MAX_PICKLED))  # one argument could otherwise be as long as the file, or longer
        for _ in range(LEGACY_PICKLES):
            yield _opcodes(start)
        file.seek(start.tell())


def _opcodes(stream: IO[bytes]) -> Opcodes:
    return ((opcode, argument) for opcode, argument, _ in islice(pickletools.genops(stream), MAX_OPCODES))
