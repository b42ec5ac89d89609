"""Fast kernels of a CPU behind plain torch: packed products, compiled passes, and how many passes run at once.

A weight stored as float16 stays float16 in memory, packed for FBGEMM, which widens it in registers and multiplies and
adds in float32: nothing is rounded that was not rounded on disk, and a sentence of a dozen pieces takes half the time
of other float32 products, which are made for taller matrices. Other weights are oneDNN's where torch has it; torch's
own choice for float32, MKL, takes twice as long on AMD processors. TorchScript compiles the passes to states
and to logits.

None of these is needed. Each is tried once, and used where it gives torch's own numbers; elsewhere plain torch computes
the same. The environment variable EMBRYO_KERNELS set to "plain" leaves them all out.
"""

import os
import time
import timeit
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from embryo_core.errors import ConfigError

SETTINGS = ("fast", "plain")
BLOCK = 512  # FBGEMM pads a weight's inputs to a multiple of this, which wastes memory, the more the fewer they are
TALL = 4096  # outputs from which that waste counts: packing such a weight takes most of the time of loading a model
KEPT = 2**22  # numbers of the largest weight whose memory in float32 is used again: 16 MB, and four times that in all
UNAVAILABLE = (AttributeError, RuntimeError, TypeError, OSError)  # what torch raises for a kernel that it lacks
_SPARE: deque[Tensor] = deque(maxlen=4)  # memory of weights in float32 that were on their way to a kernel's form
_TRYING = Lock()  # several threads load models at once; each kernel is tried, and each pass compiled, by one


# === Linear maps ===


class Linear(NamedTuple):
    """A linear map [..., in] -> [..., out]; `form` says how the weight is laid out."""

    weight: Tensor
    bias: Tensor
    form: str  # half | onednn | plain
    nbytes: int  # of memory


def make_linear(weight: Tensor, bias: Tensor) -> Linear:
    """The map of a stored weight [out, in] and bias [out], in the form that this machine multiplies fastest."""
    forms = kernels()
    out, into = weight.shape
    if "half" in forms and weight.dtype == torch.float16 and into >= (BLOCK // 2 if out >= TALL else BLOCK // 8):
        return _half(weight, bias)
    return _onednn(weight, bias) if "onednn" in forms else _plain(weight, bias)


def linear(states: Tensor, part: Linear) -> Tensor:
    """[..., in] -> [..., out]"""
    if part.form == "half":
        return torch.fbgemm_linear_fp16_weight_fp32_activation(states, part.weight, part.bias)
    if part.form == "onednn":
        return torch.ops.mkldnn._linear_pointwise(states, part.weight, part.bias, "none", [], "")
    return torch.nn.functional.linear(states, part.weight, part.bias)


def product(a: Tensor, b: Tensor) -> Tensor:
    """a [m, d] times the transpose of b [n, d]: [m, n], float32, by the fastest kernel that this processor has."""
    if "onednn" in kernels():
        return torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
    return a @ b.t()


def largest(values: np.ndarray, k: int) -> np.ndarray:
    """Indices [..., k] of the k largest of values [..., n], in any order; NumPy's search takes eight times as long."""
    return torch.from_numpy(values).topk(k, sorted=False).indices.numpy()


def _half(weight: Tensor, bias: Tensor) -> Linear:
    out, into = weight.shape
    packed = 2 * BLOCK * -(-into // BLOCK) * 16 * -(-out // 16)
    with _widened(weight) as numbers:
        return Linear(torch.fbgemm_pack_gemm_matrix_fp16(numbers), own(bias), "half", packed + 4 * out)


def _onednn(weight: Tensor, bias: Tensor) -> Linear:
    out, into = weight.shape
    blocked = 4 * 64 * -(-out // 64) * into  # oneDNN lays out rows in blocks of up to 64
    with _widened(weight) as numbers:
        return Linear(torch.ops.mkldnn._reorder_linear_weight(numbers), own(bias), "onednn", blocked + 4 * out)


def _plain(weight: Tensor, bias: Tensor) -> Linear:
    return Linear(own(weight), own(bias), "plain", 4 * (weight.numel() + bias.numel()))


@contextmanager
def _widened(weight: Tensor) -> Iterator[Tensor]:
    """The weight in float32, if it is not large in memory that another one takes over afterwards.

    To get new memory from the system for each takes longer than to turn the numbers.
    """
    if weight.numel() > KEPT:
        yield weight.float()
        return
    try:
        memory = _SPARE.pop()
    except IndexError:
        memory = torch.empty(0)
    if memory.numel() < weight.numel():
        with torch.inference_mode(False):  # a tensor made in this mode could not be written to outside it
            memory = torch.empty(weight.numel())
    yield memory[: weight.numel()].view(weight.shape).copy_(weight)
    _SPARE.append(memory)


def own(tensor: Tensor) -> Tensor:
    """A copy in float32: a tensor as it was read would keep the whole file in memory."""
    return tensor.to(torch.float32, copy=True)


# === What works here ===


def kernels() -> frozenset[str]:
    """The forms of linear maps, beside plain, that are used: "half" (FBGEMM), "onednn". Raises ConfigError."""
    if not _wanted():
        return frozenset()
    with _TRYING:
        return _working()


def compiled(passes: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled by TorchScript where that works, else as it is.

    Compiled it runs without Python's lock, so that threads which have a core each do not wait for one another.
    """

    @cache
    def script() -> Callable[..., Any]:
        try:
            with warnings.catch_warnings(action="ignore"):  # torch marks TorchScript as deprecated
                scripted = torch.jit.script(passes)
            torch._C._jit_pass_inline(scripted.graph)  # a call from one compiled function to another takes a lock
        except UNAVAILABLE:
            return passes
        return scripted

    def run(*arguments: Any) -> Any:
        if not _wanted():
            return passes(*arguments)
        with _TRYING:
            scripted = script()
        with torch.jit.optimized_execution(False):  # a first pass would wait for it, and later ones gain nothing
            return scripted(*arguments)

    return run


def _wanted() -> bool:
    setting = os.environ.get("EMBRYO_KERNELS") or SETTINGS[0]
    if setting not in SETTINGS:
        raise ConfigError(f"EMBRYO_KERNELS is '{setting}', which is unknown; known: {', '.join(SETTINGS)}.")
    return setting == "fast"


@cache
def _working() -> frozenset[str]:
    """Each kernel is tried on a small product, which has to be torch's own."""
    draw = torch.Generator().manual_seed(0)
    states, weight, bias = (torch.randn(*shape, generator=draw) for shape in ((5, 80), (24, 80), (24,)))
    weight = weight.half()
    expected = linear(states, _plain(weight, bias))
    rounding = 80 * torch.finfo(torch.float32).eps * (states.abs() @ weight.float().abs().t()).max()
    makers = {}
    if "fbgemm" in torch.backends.quantized.supported_engines:  # x86 only; elsewhere a call may end the process
        makers["half"] = _half
    if torch.backends.mkldnn.is_available():
        makers["onednn"] = _onednn
    found = set()
    with warnings.catch_warnings(action="ignore"):  # torch marks FBGEMM's functions as deprecated, once per process
        for form, make in makers.items():
            try:
                if (linear(states, make(weight, bias)) - expected).abs().max() <= rounding:
                    found.add(form)
            except UNAVAILABLE:
                continue
    return frozenset(found)


@cache
def multiplies_bfloat16() -> bool:
    """Whether products in bfloat16 take this processor clearly less time than those in float32.

    AMX computes them several times as fast. AVX-512's instructions take half of the time on one processor and twice as
    long on another (docs/benchmarks.md), so where there are any, a product is timed in both types. A quarter must be
    gained, because turning numbers from one type into the other takes time too.
    """
    instructions = torch.cpu.get_capabilities()
    if not (instructions.get("avx512_bf16") or instructions.get("amx_bf16")):
        return False
    return seconds_of_a_product(torch.bfloat16) < 0.75 * seconds_of_a_product(torch.float32)


def seconds_of_a_product(dtype: torch.dtype) -> float:
    """The shortest of ten products of 512 x 384 numbers with themselves, in seconds of the processor.

    Time in which another program has the core is not counted.
    """
    numbers = torch.ones(512, 384, dtype=dtype)
    return min(timeit.repeat(lambda: numbers @ numbers.t(), timer=time.process_time, number=1, repeat=10))


# === Threads ===


@cache
def passes_at_once() -> int:
    """How many passes run at once, each in a thread and on a core of its own: OMP_NUM_THREADS, or all cores."""
    return torch.get_num_threads()


def use_one_core_per_pass() -> None:
    """From now on torch computes each pass on one core.

    Passes side by side are faster than one after the other with each small product shared among the cores, and the
    numbers do not depend on how many cores there are.
    """
    passes_at_once()  # counted before torch's own count changes
    torch.set_num_threads(1)
