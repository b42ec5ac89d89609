"""Loaded models kept between queries within a limit in bytes, least recently used out first.

Models that are asked in passing, as those of a long series, let the others stay: they have a quarter of the limit among
themselves, and what else is free.

The limit is the environment variable EMBRYO_MODEL_MEMORY, such as "500 MB" or "4GB" (default 2 GB). It is one of
resident memory: the memory of a freed model is handed back to the system.
"""

import ctypes
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from embryo_core.errors import BrokenCheckpoint, ConfigError, MissingWeights
from embryo_core.types import Checkpoint

if TYPE_CHECKING:
    from embryo_core.engine.device import Device
    from embryo_core.engine.model import Model

Key = tuple[str, int]  # folder, and when its manifest was written
PASSING = 4  # models asked in passing may drive others out of this part of the limit, a quarter
FREED = 16  # memory is handed back once models of this part of the limit, one sixteenth, were let go
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


class ModelCache:
    """Models by checkpoint; safe to share between threads. A checkpoint that was trained again is loaded again."""

    def __init__(self, limit: int | None = None):
        """`limit` in bytes of memory; None reads EMBRYO_MODEL_MEMORY at every load."""
        self.device: Device | None = None  # that models are loaded to; None: the CPU
        self._limit = limit
        self._models: OrderedDict[Key, Model] = OrderedDict()
        self._passing: OrderedDict[Key, None] = OrderedDict()  # which of them were asked in passing, oldest first
        self._lock = Lock()
        self._freed = 0  # bytes let go and not yet handed back
        # Several checkpoints load at once, each one once: its lock is there as long as a thread holds or awaits it.
        self._loading: WeakValueDictionary[Key, Lock] = WeakValueDictionary()

    def get(self, checkpoint: Checkpoint, passing: bool = False) -> "Model":
        """The checkpoint's model, loaded unless it is here already. A model larger than the limit is not kept.

        One that is asked in `passing` stays only until others come by.

        Raises BrokenCheckpoint, MissingWeights, TokenizerMismatch and BrokenRun as `model.load` does, ConfigError for a
        limit that is not a size.
        """
        key = (str(checkpoint.path), checkpoint.written)
        if (model := self._find(key, passing)) is not None:
            return model
        limit = memory_limit() if self._limit is None else self._limit
        with self._lock:
            loading = self._loading.setdefault(key, Lock())
        with loading:
            if (model := self._find(key, passing)) is None:
                from embryo_core.engine.model import load  # torch is imported by the first query, not by the dashboard

                model = load(checkpoint, self.device) if self.device else load(checkpoint)
                self._keep(key, model, limit, passing)
        return model

    def fill(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Load checkpoints in this order until one more would not fit; what cannot be read is passed over.

        Raises TokenizerMismatch and BrokenRun, ConfigError for a limit that is not a size.
        """
        limit = memory_limit() if self._limit is None else self._limit
        for checkpoint in checkpoints:
            try:
                size = self.get(checkpoint).nbytes
            except (BrokenCheckpoint, MissingWeights):
                continue
            if self.nbytes + size > limit:
                return

    @property
    def nbytes(self) -> int:
        """Bytes of memory held now."""
        return sum(model.nbytes for model in list(self._models.values()))  # a copy: others may be loading

    def _find(self, key: Key, passing: bool) -> "Model | None":
        with self._lock:
            if key in self._models and not passing:
                self._models.move_to_end(key)
                self._passing.pop(key, None)
            return self._models.get(key)

    def _keep(self, key: Key, model: "Model", limit: int, passing: bool) -> None:
        """Add a model, and let others go until the limit is met."""
        with self._lock:
            for old in [other for other in self._models if other[0] == key[0]]:
                self._freed += self._let_go(old)
            if model.nbytes > limit:
                return  # alone too large: the others may stay
            self._models[key] = model
            if passing:
                self._passing[key] = None
            while self.nbytes > limit:
                self._freed += self._let_go(self._next_to_go(limit))
            if self._freed > limit // FREED:
                _hand_back_memory()
                self._freed = 0

    def _next_to_go(self, limit: int) -> Key:
        """The oldest asked in passing as long as these fill their part of the limit, else the least recently used."""
        passing = sum(self._models[key].nbytes for key in self._passing)
        others = (key for key in self._models if key not in self._passing)
        oldest = next(iter(self._passing), None)
        if len(self._passing) > 1 and passing > limit // PASSING:
            return oldest
        return next(others, oldest)

    def _let_go(self, key: Key) -> int:
        """Drop a model; the bytes that it held."""
        self._passing.pop(key, None)
        return self._models.pop(key).nbytes


def _hand_back_memory() -> None:
    """Hand the pages of freed models back to the system; glibc keeps those that lie between others in use."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def memory_limit() -> int:
    """Bytes in EMBRYO_MODEL_MEMORY. Raises ConfigError where it is not a size."""
    received = os.environ.get("EMBRYO_MODEL_MEMORY") or "2 GB"
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", received)
    if match is None or match[2].upper() not in UNITS:
        raise ConfigError(
            f"EMBRYO_MODEL_MEMORY is '{received}', which is not a size; write for example 500 MB or 4 GB."
        )
    return int(float(match[1]) * UNITS[match[2].upper()])


MODELS = ModelCache()
