"""Tests of the kernels: one is used only if it gives torch's numbers, and without it plain torch computes the same."""

import os
import subprocess
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from embryo_core import runs
from embryo_core.engine import device
from embryo_core.engine import kernels as fast
from embryo_core.engine.model import load
from embryo_core.errors import ConfigError
from embryo_core.types import Run
from tests.rounding import rounding

EPSILON = torch.finfo(torch.float32).eps


@pytest.fixture
def untried_kernels() -> None:
    """Forget which kernels work, before the test and after it."""
    fast._working_forms.cache_clear()
    yield
    fast._working_forms.cache_clear()


@pytest.mark.parametrize("stored", [torch.float16, torch.float32])
@pytest.mark.parametrize(("out", "into"), [(3, 64), (50, 7), (130, 600)])
def test_linear_map_stays_within_rounding_error(kernels, stored, out, into) -> None:
    """The bound of every sum holds in both paths, for each layout of the weight, for one row and for many."""
    torch.manual_seed(0)
    weight, bias = torch.randn(out, into).to(stored), torch.randn(out).to(stored)
    part = fast.make_linear(weight, bias)
    assert (part.form == "plain") == (kernels == "plain") or not fast.kernels()
    for rows in (1, 33):
        states = torch.randn(rows, into)
        exact = states.double() @ weight.double().t() + bias
        most = into * EPSILON * (states.double().abs() @ weight.double().abs().t() + bias.abs())  # bound of each sum
        assert ((fast.linear(states, part) - exact).abs() <= most).all()
        assert ((fast.product(states, weight.float()) + bias.float() - exact).abs() <= most).all()


@pytest.mark.parametrize("most", [0, 64 * 64])
@pytest.mark.parametrize("stored", [torch.float16, torch.float32])
def test_creating_linear_maps_does_not_change_earlier_ones(kernels, stored, most, monkeypatch) -> None:
    """The others are smaller and larger; their numbers pass through reused memory or exceed it."""
    monkeypatch.setattr(fast, "MAX_REUSED", most)
    made = []
    for out, into in ((64, 64), (8, 5), (80, 70)):
        states, part = torch.randn(3, into), fast.make_linear(torch.randn(out, into).to(stored), torch.zeros(out))
        made.append((states, part, fast.linear(states, part)))
    assert all(torch.equal(fast.linear(states, part), before) for states, part, before in made)


def test_linear_maps_work_inside_and_outside_inference_mode(kernels, monkeypatch) -> None:
    """The modes alternate: a question loads models inside inference mode, an evaluation outside."""
    monkeypatch.setattr(fast, "_SPARE", deque(maxlen=4))
    weight, states = torch.randn(50, 70).half(), torch.randn(2, 70)
    products = []
    for mode in (True, False, True):
        with torch.inference_mode(mode):
            products.append(fast.linear(states, fast.make_linear(weight, torch.zeros(50))))
    assert torch.equal(products[0], products[1]) and torch.equal(products[0], products[2])


def test_linear_maps_can_be_made_by_several_threads(kernels) -> None:
    """Each map keeps its own weight although the numbers pass through reused memory."""
    weights = [torch.full((300, 280), float(number)).half() for number in range(64)]
    with ThreadPoolExecutor(8) as threads:
        parts = list(threads.map(lambda weight: fast.make_linear(weight, torch.zeros(len(weight))), weights))
    states = torch.zeros(1, 280)
    states[0, 0] = 1
    assert [fast.linear(states, part).unique().tolist() for part in parts] == [[number] for number in range(64)]


def test_both_paths_give_the_same_logits(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The logits differ only by rounding."""
    logits_of = {}
    for setting in fast.SETTINGS:
        monkeypatch.setenv("EMBRYO_KERNELS", setting)
        model = load(runs.checkpoint(tiny_run, 16))
        ids = model.tokenizer.encode_text("She was born in [MASK].")[None]
        logits_of[setting] = model.mlm_logits(ids, [0, 0], [1, 2])
    assert abs(logits_of["fast"] - logits_of["plain"]).max() <= rounding(model, ids.shape[1], logits_of["plain"])


@pytest.mark.parametrize("problem", [RuntimeError("not on this processor"), AttributeError("not in this torch")])
def test_missing_kernel_is_skipped(tiny_run, untried_kernels, monkeypatch, problem) -> None:
    """A model loads if FBGEMM cannot pack and TorchScript cannot compile on this machine."""

    def refuse(*_):
        raise problem

    monkeypatch.setattr(torch, "fbgemm_pack_gemm_matrix_fp16", refuse)
    monkeypatch.setattr(torch.jit, "script", refuse)
    assert "half" not in fast.kernels()
    double = fast.compiled(lambda number: 2 * number)
    assert double(21) == 42
    load(runs.checkpoint(tiny_run, 16))


def test_inaccurate_kernel_is_not_used(untried_kernels, monkeypatch) -> None:
    """A kernel whose product differs from torch's counts as missing."""
    monkeypatch.setattr(fast, "_onednn", lambda weight, bias: fast._plain(1.001 * weight.float(), bias))
    assert "onednn" not in fast.kernels()


def test_unknown_kernel_setting_is_refused(monkeypatch) -> None:
    """The error lists the values that EMBRYO_KERNELS may have."""
    monkeypatch.setenv("EMBRYO_KERNELS", "quick")
    with pytest.raises(ConfigError, match="EMBRYO_KERNELS is 'quick', which is unknown; known: fast, plain"):
        fast.kernels()


def test_import_does_not_change_torch_settings() -> None:
    """The number of threads and the filters of warnings stay the same."""
    code = (
        "import torch, warnings; before = torch.get_num_threads(), list(warnings.filters)\n"
        "import embryo_core.engine.model\n"
        "assert (torch.get_num_threads(), list(warnings.filters)) == before"
    )
    command = [sys.executable, "-W", "default", "-c", code]
    assert subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "2"}).returncode == 0


@pytest.fixture
def untimed_bfloat16() -> None:
    """Forget which type the processor multiplies faster, before the test and after it."""
    device.multiplies_bfloat16.cache_clear()
    yield
    device.multiplies_bfloat16.cache_clear()


@pytest.mark.parametrize("instructions", [("avx512_bf16",), ("amx_bf16",), ("avx512_bf16", "amx_bf16")])
@pytest.mark.parametrize(("seconds", "faster"), [(0.3, True), (0.74, True), (0.8, False), (2.0, False)])
def test_bfloat16_is_used_only_if_clearly_faster(instructions, seconds, faster, untimed_bfloat16, monkeypatch) -> None:
    """Float32 takes one second here. Some processors have the instructions and are slower with them."""
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: dict.fromkeys(instructions, True))
    monkeypatch.setattr(device, "seconds_of_a_product", {torch.float32: 1.0, torch.bfloat16: seconds}.get)
    assert device.multiplies_bfloat16() is faster


@pytest.mark.parametrize("instructions", [{}, {"avx512_bf16": False, "amx_bf16": False}])  # the first is not an x86
def test_processor_without_bfloat16_is_not_timed(instructions, untimed_bfloat16, monkeypatch) -> None:
    """Products in bfloat16 then run in torch's own code, which is many times slower."""
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: instructions)
    monkeypatch.setattr(device, "seconds_of_a_product", lambda dtype: pytest.fail("timed"))
    assert not device.multiplies_bfloat16()


def test_shortest_of_ten_products_counts(monkeypatch) -> None:
    """Another program may have used the core during the others."""
    seconds = iter([9.0] * 9 + [0.5])
    monkeypatch.setattr("timeit.Timer.timeit", lambda *_: next(seconds))
    assert device.seconds_of_a_product(torch.float32) == 0.5


def test_products_are_timed_by_cpu_time(monkeypatch) -> None:
    """The process's CPU time stops while another program has the core."""
    clock = []
    monkeypatch.setattr("timeit.repeat", lambda *_, timer, **__: clock.append(timer) or [1.0])
    device.seconds_of_a_product(torch.float32)
    assert clock == [time.process_time]
