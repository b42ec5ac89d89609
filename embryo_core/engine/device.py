"""The device, dtype, batch size and number of threads with which models compute."""

import time
import timeit
from dataclasses import dataclass
from functools import cache

import torch

from embryo_core.errors import ConfigError, first_line

DEVICE_NAMES = ("cpu", "cuda", "mps")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
CPU_TOKENS = 1024  # largest batch in tokens, so that its activations fit into a core's cache
MAX_GPU_TOKENS = 32_768  # largest batch in tokens; fewer already keep a GPU busy
LOGIT_BYTES = 4  # bytes of a logit; the logits of a batch take at most a quarter of the free memory
ASSUMED_FREE = 4 * 2**30  # bytes of free memory, for a device that does not report it


@dataclass(frozen=True)
class Device:
    """A device by its name in torch, and the type of the weights on it."""

    name: str = "cpu"
    dtype: torch.dtype = torch.float32

    def parallel_passes(self) -> int:
        """Return the number of parallel passes, each in one thread: one on a GPU, else one per core."""
        return parallel_passes() if self.name == "cpu" else 1

    def max_batch_tokens(self, pieces: int) -> int:
        """Return the largest batch, in tokens, for a model with a vocabulary of `pieces` pieces."""
        if self.name == "cpu":
            return CPU_TOKENS
        free = torch.cuda.mem_get_info()[0] if self.name == "cuda" else ASSUMED_FREE
        return max(CPU_TOKENS, min(MAX_GPU_TOKENS, free // (4 * LOGIT_BYTES * pieces)))


CPU = Device()


def find_device(name: str, dtype: str = "float32") -> Device:
    """Return the device of this name; "auto" is the first GPU, else the CPU. Raises ConfigError if it is absent."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next((gpu for gpu in ("cuda", "mps") if available[gpu]), "cpu")
    if not available.get(name):
        present = ", ".join(device for device in DEVICE_NAMES if available[device])
        raise ConfigError(f"This machine has no device '{name}'; it has: {present}. Leave out --device, or name one.")
    return Device(name, DTYPES[dtype])


def find_training_device(name: str | None) -> str:
    """Return torch's name of any device, such as "cuda:1"; for None and "auto", CUDA if available, else the CPU.

    Raises ConfigError if torch cannot use it.
    """
    if name is None or name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name).item()  # also fails for the device "meta", whose tensors have no values
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as reason:
        why = first_line(reason).partition(". ")[0].removesuffix(".")
        raise ConfigError(f"Device '{name}' cannot be used ({why}); give cpu, or leave out --device.") from None
    return name


# === CPU ===


@cache
def parallel_passes() -> int:
    """Return the number of parallel passes, each in one thread on one core: OMP_NUM_THREADS, or all cores."""
    return torch.get_num_threads()


def use_one_core_per_pass() -> None:
    """Make torch compute each pass on one core: faster, and with the same numbers on any number of cores."""
    parallel_passes()  # cached before torch's thread count changes
    torch.set_num_threads(1)


@cache
def multiplies_bfloat16() -> bool:
    """Return whether bfloat16 products are clearly faster than float32 on this processor.

    AMX is several times as fast. AVX-512 takes half the time on one processor and twice the time on another
    (docs/benchmarks.md), so a product is timed in both types. It must save a quarter, as conversion takes time too.
    """
    instructions = torch.cpu.get_capabilities()
    if not (instructions.get("avx512_bf16") or instructions.get("amx_bf16")):
        return False
    return seconds_of_a_product(torch.bfloat16) < 0.75 * seconds_of_a_product(torch.float32)


def seconds_of_a_product(dtype: torch.dtype) -> float:
    """Return the shortest CPU time (s) of ten products of a 512 x 384 matrix with its transpose."""
    numbers = torch.ones(512, 384, dtype=dtype)
    return min(timeit.repeat(lambda: numbers @ numbers.t(), timer=time.process_time, number=1, repeat=10))
