"""Kernels are used where they give torch's numbers; where one is missing, plain torch computes the same."""

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
def tried_again() -> None:
    """Which kernels work is found out anew in the test, and once more after it."""
    fast._working.cache_clear()
    yield
    fast._working.cache_clear()


@pytest.mark.parametrize("stored", [torch.float16, torch.float32])
@pytest.mark.parametrize(("out", "into"), [(3, 64), (50, 7), (130, 600)])
def test_a_linear_map_is_that_of_torch(kernels, stored, out, into) -> None:
    """However the weight is laid out, in either path, for one row and for many."""
    torch.manual_seed(0)
    weight, bias = torch.randn(out, into).to(stored), torch.randn(out).to(stored)
    part = fast.make_linear(weight, bias)
    assert (part.form == "plain") == (kernels == "plain") or not fast.kernels()
    for rows in (1, 33):
        states = torch.randn(rows, into)
        exact = states.double() @ weight.double().t() + bias
        most = into * EPSILON * (states.double().abs() @ weight.double().abs().t() + bias.abs())  # every sum's bound
        assert ((fast.linear(states, part) - exact).abs() <= most).all()
        assert ((fast.product(states, weight.float()) + bias.float() - exact).abs() <= most).all()


@pytest.mark.parametrize("most", [0, 64 * 64])
@pytest.mark.parametrize("stored", [torch.float16, torch.float32])
def test_a_map_stays_as_it_is_when_others_are_made(kernels, stored, most, monkeypatch) -> None:
    """Smaller and larger ones, whether their numbers pass through the same memory or are too many for it."""
    monkeypatch.setattr(fast, "MAX_REUSED", most)
    made = []
    for out, into in ((64, 64), (8, 5), (80, 70)):
        states, part = torch.randn(3, into), fast.make_linear(torch.randn(out, into).to(stored), torch.zeros(out))
        made.append((states, part, fast.linear(states, part)))
    assert all(torch.equal(fast.linear(states, part), before) for states, part, before in made)


def test_maps_are_made_within_inference_mode_and_outside(kernels, monkeypatch) -> None:
    """By turns: a question loads models within it, an evaluation outside."""
    monkeypatch.setattr(fast, "_SPARE", deque(maxlen=4))
    weight, states = torch.randn(50, 70).half(), torch.randn(2, 70)
    found = []
    for mode in (True, False, True):
        with torch.inference_mode(mode):
            found.append(fast.linear(states, fast.make_linear(weight, torch.zeros(50))))
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_maps_are_made_by_several_threads(kernels) -> None:
    """Each has its own weight, though their numbers pass through memory that is used again."""
    weights = [torch.full((300, 280), float(number)).half() for number in range(64)]
    with ThreadPoolExecutor(8) as threads:
        parts = list(threads.map(lambda weight: fast.make_linear(weight, torch.zeros(len(weight))), weights))
    states = torch.zeros(1, 280)
    states[0, 0] = 1
    assert [fast.linear(states, part).unique().tolist() for part in parts] == [[number] for number in range(64)]


def test_both_paths_give_the_same_logits(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same but for rounding."""
    found = {}
    for setting in fast.SETTINGS:
        monkeypatch.setenv("EMBRYO_KERNELS", setting)
        model = load(runs.checkpoint(tiny_run, 16))
        ids = model.tokenizer.encode_text("She was born in [MASK].")[None]
        found[setting] = model.mlm_logits(ids, ids > 0, [0, 0], [1, 2])
    assert abs(found["fast"] - found["plain"]).max() <= rounding(model, ids.shape[1], found["plain"])


@pytest.mark.parametrize("problem", [RuntimeError("not on this processor"), AttributeError("not in this torch")])
def test_a_missing_kernel_is_done_without(tiny_run, tried_again, monkeypatch, problem) -> None:
    """FBGEMM that cannot pack, and TorchScript that cannot compile, are passed over without a word."""

    def refuse(*_):
        raise problem

    monkeypatch.setattr(torch, "fbgemm_pack_gemm_matrix_fp16", refuse)
    monkeypatch.setattr(torch.jit, "script", refuse)
    assert "half" not in fast.kernels()
    double = fast.compiled(lambda number: 2 * number)
    assert double(21) == 42
    load(runs.checkpoint(tiny_run, 16))


def test_a_kernel_with_other_numbers_is_not_used(tried_again, monkeypatch) -> None:
    """A product that is not torch's own is a kernel that does not work here."""
    monkeypatch.setattr(fast, "_onednn", lambda weight, bias: fast._plain(1.001 * weight.float(), bias))
    assert "onednn" not in fast.kernels()


def test_an_unknown_setting_is_refused(monkeypatch) -> None:
    """EMBRYO_KERNELS is fast or plain."""
    monkeypatch.setenv("EMBRYO_KERNELS", "quick")
    with pytest.raises(ConfigError, match="EMBRYO_KERNELS is 'quick', which is unknown; known: fast, plain"):
        fast.kernels()


def test_importing_leaves_torch_as_it_is() -> None:
    """Neither the number of threads nor the warnings of others change with an import."""
    code = (
        "import torch, warnings; before = torch.get_num_threads(), list(warnings.filters)\n"
        "import embryo_core.engine.model\n"
        "assert (torch.get_num_threads(), list(warnings.filters)) == before"
    )
    command = [sys.executable, "-W", "default", "-c", code]
    assert subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "2"}).returncode == 0


@pytest.fixture
def timed_again() -> None:
    """Forget which type the processor multiplies faster, before the test and after it."""
    device.multiplies_bfloat16.cache_clear()
    yield
    device.multiplies_bfloat16.cache_clear()


@pytest.mark.parametrize("instructions", [("avx512_bf16",), ("amx_bf16",), ("avx512_bf16", "amx_bf16")])
@pytest.mark.parametrize(("seconds", "faster"), [(0.3, True), (0.74, True), (0.8, False), (2.0, False)])
def test_products_are_in_bfloat16_where_that_takes_clearly_less_time(
    instructions, seconds, faster, timed_again, monkeypatch
) -> None:
    """Of float32's one second: some processors have the instructions and are slower with them."""
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: dict.fromkeys(instructions, True))
    monkeypatch.setattr(device, "seconds_of_a_product", {torch.float32: 1.0, torch.bfloat16: seconds}.get)
    assert device.multiplies_bfloat16() is faster


@pytest.mark.parametrize("instructions", [{}, {"avx512_bf16": False, "amx_bf16": False}])  # the first is not an x86
def test_without_instructions_nothing_is_timed(instructions, timed_again, monkeypatch) -> None:
    """Products in bfloat16 are then torch's own, many times as slow."""
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: instructions)
    monkeypatch.setattr(device, "seconds_of_a_product", lambda dtype: pytest.fail("timed"))
    assert not device.multiplies_bfloat16()


def test_the_shortest_of_ten_products_counts(monkeypatch) -> None:
    """Another program may have had the core during the others."""
    seconds = iter([9.0] * 9 + [0.5])
    monkeypatch.setattr("timeit.Timer.timeit", lambda *_: next(seconds))
    assert device.seconds_of_a_product(torch.float32) == 0.5


def test_time_in_which_another_program_has_the_core_is_not_counted(monkeypatch) -> None:
    """The clock is the process's CPU time, which stops while it waits."""
    clock = []
    monkeypatch.setattr("timeit.repeat", lambda *_, timer, **__: clock.append(timer) or [1.0])
    device.seconds_of_a_product(torch.float32)
    assert clock == [time.process_time]
