"""The device that models are on, the numbers that they compute in, and how much they take at once."""

from dataclasses import dataclass

import torch

from embryo_core.engine import cpu
from embryo_core.errors import ConfigError

NAMES = ("cpu", "cuda", "mps")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
CPU_TOKENS = 1024  # in a batch: its activations then stay within a core's cache
MOST_TOKENS = 32_768  # on a GPU, which is busy with less
LOGITS = 4  # bytes; a batch's logits take a quarter of the free memory at most
FREE_WITHOUT_COUNT = 4 * 2**30  # bytes taken for free where a device does not tell


@dataclass(frozen=True)
class Device:
    """A device by its name in torch, and the type of the weights on it."""

    name: str = "cpu"
    dtype: torch.dtype = torch.float32

    def passes_at_once(self) -> int:
        """How many passes run at once, each in a thread of its own: one on a GPU, one a core otherwise."""
        return cpu.passes_at_once() if self.name == "cpu" else 1

    def tokens_at_once(self, pieces: int) -> int:
        """Tokens in a batch of a model with so many pieces in its vocabulary."""
        if self.name == "cpu":
            return CPU_TOKENS
        free = torch.cuda.mem_get_info()[0] if self.name == "cuda" else FREE_WITHOUT_COUNT
        return max(CPU_TOKENS, min(MOST_TOKENS, free // (4 * LOGITS * pieces)))


CPU = Device()


def find_device(name: str, dtype: str = "float32") -> Device:
    """The device of this name; "auto" is the first GPU, or else the CPU. Raises ConfigError where it is absent."""
    here = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next((gpu for gpu in ("cuda", "mps") if here[gpu]), "cpu")
    if not here.get(name):
        known = ", ".join(known for known in NAMES if here[known])
        raise ConfigError(f"This machine has no device '{name}'; it has: {known}. Leave out --device, or name one.")
    return Device(name, DTYPES[dtype])
