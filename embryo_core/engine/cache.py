"""Keep loaded models in memory between queries, up to a limit in bytes; the least recently used are evicted first.

Transient models, such as those of a long series that is queried once, use free memory and at most a quarter of the
limit, so that a series does not evict all other models. Memory-mapped models are not kept.

The environment variable EMBRYO_MODEL_MEMORY sets the limit, such as "500 MB" or "4GB" (default 2 GB). It limits
resident memory: the memory of evicted models is returned to the system.
"""

import ctypes
import os
import re
import sys
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from embryo_core.errors import ConfigError
from embryo_core.types import Checkpoint

if TYPE_CHECKING:
    from embryo_core.engine.device import Device
    from embryo_core.engine.model import Model

Key = tuple[str, int]  # folder, and manifest mtime (ns), which changes if the step is retrained
TRANSIENT_QUOTA = 1 / 4  # share of the limit
TRIM_AFTER = 1 / 16  # share of the limit; once this much was evicted, memory is returned to the system
UNIT_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


class ModelCache:
    """A thread-safe cache of models by checkpoint; a retrained checkpoint is loaded again."""

    def __init__(self, limit: int | None = None):
        """Limit the memory to `limit` bytes; with None, to EMBRYO_MODEL_MEMORY, which is read at every load."""
        self.device: Device | None = None  # device of the models; None: the CPU
        self._limit = limit
        self._models: OrderedDict[Key, Model] = OrderedDict()  # least recently used first
        self._transient: OrderedDict[Key, None] = OrderedDict()  # those that are transient, oldest first
        self._lock = Lock()
        self._evicted = 0  # bytes not yet returned to the system
        # A lock per checkpoint that is being loaded: different ones load in parallel, each of them only once.
        self._loading: WeakValueDictionary[Key, Lock] = WeakValueDictionary()

    def get(self, checkpoint: Checkpoint, transient: bool = False) -> "Model":
        """Return the checkpoint's model, loaded unless it is cached. Raises ConfigError, and as `model.load` does."""
        key = (str(checkpoint.path), checkpoint.manifest_mtime)
        if (model := self._find(key, transient)) is not None:
            return model
        limit = memory_limit() if self._limit is None else self._limit
        with self._lock:
            loading = self._loading.setdefault(key, Lock())
        with loading:
            if (model := self._find(key, transient)) is None:
                from embryo_core.engine.model import load  # torch is imported with the first query

                model = load(checkpoint, self.device) if self.device else load(checkpoint)
                self._keep(key, model, limit, transient)
        return model

    @property
    def nbytes(self) -> int:
        """Return the memory of all cached models in bytes."""
        return sum(model.nbytes for model in list(self._models.values()))  # copied, since other threads may load

    def _find(self, key: Key, transient: bool) -> "Model | None":
        """Return the cached model, if any; mark it as recently used unless the use is transient."""
        with self._lock:
            if key in self._models and not transient:
                self._models.move_to_end(key)
                self._transient.pop(key, None)
            return self._models.get(key)

    def _keep(self, key: Key, model: "Model", limit: int, transient: bool) -> None:
        """Add a model, and evict models until the limit is met."""
        with self._lock:
            for old_key in [cached_key for cached_key in self._models if cached_key[0] == key[0]]:
                self._evict(old_key)
            if model.nbytes > limit or model.mapped:
                return  # larger than the whole cache; or mapped, so that the system caches its file
            self._models[key] = model
            if transient:
                self._transient[key] = None
            while self.nbytes > limit:
                self._evict(self._next_to_evict(limit))
            if self._evicted > limit * TRIM_AFTER:
                return_memory()
                self._evicted = 0

    def _next_to_evict(self, limit: int) -> Key:
        """Return the oldest transient model if these exceed their quota, else the least recently used other model."""
        transient_bytes = sum(self._models[key].nbytes for key in self._transient)
        oldest = next(iter(self._transient), None)
        if oldest and len(self._transient) > 1 and transient_bytes > limit * TRANSIENT_QUOTA:
            return oldest
        return next((key for key in self._models if key not in self._transient), oldest) or next(iter(self._models))

    def _evict(self, key: Key) -> None:
        self._transient.pop(key, None)
        self._evicted += self._models.pop(key).nbytes


def return_memory() -> None:
    """Return the memory of evicted models to the system; glibc by itself keeps free pages between used ones."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def memory_limit() -> int:
    """Return the limit in EMBRYO_MODEL_MEMORY in bytes (default 2 GB). Raises ConfigError if it is not a size."""
    value = os.environ.get("EMBRYO_MODEL_MEMORY") or "2 GB"
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    if match is None or match[2].upper() not in UNIT_BYTES:
        raise ConfigError(f"EMBRYO_MODEL_MEMORY is '{value}', which is not a size; write for example 500 MB or 4 GB.")
    return int(float(match[1]) * UNIT_BYTES[match[2].upper()])


MODELS = ModelCache()
