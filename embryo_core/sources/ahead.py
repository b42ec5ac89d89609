"""Checkpoints one after the other, the next one's weights being fetched meanwhile; what was fetched may go again."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from embryo_core.engine import remote
from embryo_core.errors import BrokenCheckpoint, MissingWeights
from embryo_core.types import Checkpoint, Pointer


def fetched_ahead(checkpoints: Sequence[Checkpoint], discard: bool) -> Iterator[Checkpoint]:
    """Each checkpoint once its weights are there; with `discard`, those that were fetched for it are then removed.

    One that cannot be fetched is given all the same: whoever loads it is told why.
    """
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(_fetch, checkpoints[0]) if checkpoints else None
        for i, checkpoint in enumerate(checkpoints):
            fetched = coming.result()
            if i + 1 < len(checkpoints):
                coming = pool.submit(_fetch, checkpoints[i + 1])
            yield checkpoint
            for pointer in fetched if discard else ():
                remote.discard(pointer)


def _fetch(checkpoint: Checkpoint) -> list[Pointer]:
    try:
        return remote.fetch_checkpoint(checkpoint)
    except (BrokenCheckpoint, MissingWeights):
        return []
