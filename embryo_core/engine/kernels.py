"""Fast CPU kernels: packed linear maps and compiled passes, each with plain torch to fall back on.

Weights stored as float16 stay float16 in memory, packed for FBGEMM. It widens them in registers, then multiplies and
adds in float32, so nothing is rounded that was not rounded on disk. On a sentence of a dozen pieces it takes half the
time of other float32 products, which are tuned for taller matrices. Other weights use oneDNN if torch has it; MKL,
torch's own choice for float32, takes twice as long on AMD processors. TorchScript compiles the passes to states and to
logits.

All of these are optional. Each kernel is tried once and used if it reproduces torch's numbers; otherwise plain torch
computes the same. Setting the environment variable EMBRYO_KERNELS to "plain" disables them all.
"""

import os
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
BLOCK_SIZE = 512  # FBGEMM pads the input size to a multiple of this, which wastes memory on narrow weights
MIN_TALL = 4096  # outputs; packing a padded weight with at least this number dominates the loading of a model
MAX_REUSED = 2**22  # numbers of the largest weight with a reused float32 buffer (16 MB; at most 4 buffers)
UNAVAILABLE = (AttributeError, RuntimeError, TypeError, OSError)  # errors that torch raises for a missing kernel
_SPARE: deque[Tensor] = deque(maxlen=4)  # float32 buffers, reused while weights are packed
_TRIAL_LOCK = Lock()  # only one of several loading threads tries the kernels and compiles the passes


# === Linear maps ===


class Linear(NamedTuple):
    """A linear map [..., in] -> [..., out]; `form` is the layout of its weight.

    half: float16, packed for FBGEMM; onednn: float32 in blocks; plain: float32 [out, in]; stored: as in the file,
    [out, in]; transposed: as in the file, [in, out].
    """

    weight: Tensor
    bias: Tensor
    form: str  # half | onednn | plain | stored | transposed
    nbytes: int  # of weight and bias in memory


def make_linear(weight: Tensor, bias: Tensor, shared: bool = False) -> Linear:
    """Return the linear map of a weight [out, in] and bias [out], in the fastest form on this machine.

    A `shared` float16 weight, which is in memory anyway, is not widened: that costs little time on the few rows of a
    query, and saves half of the memory of a small model.
    """
    forms = kernels()
    out, into = weight.shape
    min_width = BLOCK_SIZE // (2 if out >= MIN_TALL else 8)
    if "half" in forms and weight.dtype == torch.float16 and into >= min_width:
        return _half(weight, bias)
    if shared and weight.dtype == torch.float16:
        return Linear(weight, copy_float32(bias), "stored", 4 * len(bias))
    return _onednn(weight, bias) if "onednn" in forms else _plain(weight, bias)


def linear(states: Tensor, linear_map: Linear) -> Tensor:
    """Apply a linear map: [..., in] -> [..., out]."""
    if linear_map.form == "stored" or linear_map.form == "transposed":
        rows = states.reshape(-1, states.shape[-1])
        output = (
            apply_transposed(rows, linear_map) if linear_map.form == "transposed" else apply_stored(rows, linear_map)
        )
        return output.view(states.shape[:-1] + output.shape[1:])
    if linear_map.form == "half":
        return torch.fbgemm_linear_fp16_weight_fp32_activation(states, linear_map.weight, linear_map.bias)
    if linear_map.form == "onednn":
        return torch.ops.mkldnn._linear_pointwise(states, linear_map.weight, linear_map.bias, "none", [], "")
    return torch.nn.functional.linear(states, linear_map.weight, linear_map.bias)


def apply_stored(states: Tensor, linear_map: Linear) -> Tensor:
    """Apply a map stored as [out, in] to states [n, in], widening a block of its rows at a time; return [n, out]."""
    weight, bias = linear_map.weight, linear_map.bias
    out, into = weight.shape
    step = min(1024, max(1, 524288 // into))  # rows that fit into the processor's cache
    output, buffer = torch.empty(len(states), out), torch.empty(min(step, out), into)
    for i in range(0, out, step):
        block = weight[i : i + step]
        numbers = buffer[: len(block)].copy_(block)
        output[:, i : i + step] = torch.addmm(bias[i : i + step], states, numbers.t())
    return output


def apply_transposed(states: Tensor, linear_map: Linear) -> Tensor:
    """Apply a map stored as [in, out] to states [n, in], widening a block of its rows at a time; return [n, out]."""
    weight = linear_map.weight
    into, out = weight.shape
    step = max(1, 524288 // out)
    output, buffer = linear_map.bias.repeat(len(states), 1), torch.empty(min(step, into), out)
    for i in range(0, into, step):
        block = weight[i : i + step]
        output.addmm_(states[:, i : i + step], buffer[: len(block)].copy_(block))
    return output


def product(a: Tensor, b: Tensor) -> Tensor:
    """Multiply a [m, d] by the transpose of b [n, d] with the fastest kernel; return float32 [m, n]."""
    if "onednn" in kernels():
        return torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
    return a @ b.t()


def largest(values: np.ndarray, k: int) -> np.ndarray:
    """Return indices [..., k] of the k largest of values [..., n], in any order; NumPy takes eight times as long."""
    return torch.from_numpy(values).topk(k, sorted=False).indices.numpy()


def _half(weight: Tensor, bias: Tensor) -> Linear:
    """Return a linear map with a float16 weight, packed for FBGEMM."""
    out, into = weight.shape
    packed_bytes = 2 * BLOCK_SIZE * -(-into // BLOCK_SIZE) * 16 * -(-out // 16)
    with _widened(weight) as numbers:
        return Linear(torch.fbgemm_pack_gemm_matrix_fp16(numbers), copy_float32(bias), "half", packed_bytes + 4 * out)


def _onednn(weight: Tensor, bias: Tensor) -> Linear:
    """Return a linear map with a float32 weight, reordered for oneDNN."""
    out, into = weight.shape
    blocked_bytes = 4 * 64 * -(-out // 64) * into  # oneDNN lays out rows in blocks of up to 64
    with _widened(weight) as numbers:
        return Linear(
            torch.ops.mkldnn._reorder_linear_weight(numbers), copy_float32(bias), "onednn", blocked_bytes + 4 * out
        )


def _plain(weight: Tensor, bias: Tensor) -> Linear:
    """Return a linear map with a float32 weight as torch uses it."""
    return Linear(copy_float32(weight), copy_float32(bias), "plain", 4 * (weight.numel() + bias.numel()))


@contextmanager
def _widened(weight: Tensor) -> Iterator[Tensor]:
    """Yield the weight in float32, in a reused buffer unless it is large: allocating takes longer than converting."""
    if weight.numel() > MAX_REUSED:
        yield weight.float()
        return
    try:
        memory = _SPARE.pop()
    except IndexError:
        memory = torch.empty(0)
    if memory.numel() < weight.numel():
        with torch.inference_mode(False):  # a tensor made in inference mode cannot be written outside it
            memory = torch.empty(weight.numel())
    yield memory[: weight.numel()].view(weight.shape).copy_(weight)
    _SPARE.append(memory)


def copy_float32(tensor: Tensor) -> Tensor:
    """Copy a tensor to float32; the original would keep its whole file in memory."""
    return tensor.to(torch.float32, copy=True)


# === Which kernels work ===


def kernels() -> frozenset[str]:
    """Return the fast forms of linear maps in use: "half" (FBGEMM), "onednn". Raises ConfigError."""
    if not _is_enabled():
        return frozenset()
    with _TRIAL_LOCK:
        return _working_forms()


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function with TorchScript; return it unchanged if that fails.

    Compiled code runs without Python's global lock, so threads on different cores do not wait for one another.
    """

    @cache
    def script() -> Callable[..., Any]:
        try:
            with warnings.catch_warnings(action="ignore"):  # TorchScript is deprecated
                compiled_function = torch.jit.script(function)
            torch._C._jit_pass_inline(compiled_function.graph)  # calls between compiled functions take a lock
        except UNAVAILABLE:
            return function
        return compiled_function

    def run(*arguments: Any) -> Any:
        if not _is_enabled():
            return function(*arguments)
        with _TRIAL_LOCK:
            compiled_function = script()
        with torch.jit.optimized_execution(False):  # optimising delays the first pass without a later gain
            return compiled_function(*arguments)

    return run


def _is_enabled() -> bool:
    """Return whether EMBRYO_KERNELS allows fast kernels. Raises ConfigError for an unknown setting."""
    setting = os.environ.get("EMBRYO_KERNELS") or SETTINGS[0]
    if setting not in SETTINGS:
        raise ConfigError(f"EMBRYO_KERNELS is '{setting}', which is unknown; known: {', '.join(SETTINGS)}.")
    return setting == "fast"


@cache
def _working_forms() -> frozenset[str]:
    """Try each kernel on a small product; return those that reproduce torch's result."""
    draw = torch.Generator().manual_seed(0)
    states, weight, bias = (torch.randn(*shape, generator=draw) for shape in ((5, 80), (24, 80), (24,)))
    weight = weight.half()
    reference = linear(states, _plain(weight, bias))
    tolerance = 80 * torch.finfo(torch.float32).eps * (states.abs() @ weight.float().abs().t()).max()
    makers = {}
    if "fbgemm" in torch.backends.quantized.supported_engines:  # x86 only; elsewhere a call may crash the process
        makers["half"] = _half
    if torch.backends.mkldnn.is_available():
        makers["onednn"] = _onednn
    forms = set()
    with warnings.catch_warnings(action="ignore"):  # FBGEMM is deprecated; torch warns once per process
        for form, make in makers.items():
            try:
                if (linear(states, make(weight, bias)) - reference).abs().max() <= tolerance:
                    forms.add(form)
            except UNAVAILABLE:
                continue
    return frozenset(forms)
