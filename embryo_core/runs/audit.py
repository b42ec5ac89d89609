"""Finds checkpoints that are not what they are said to be, from measurements of their tensors; nothing is loaded here.

Public series are known to hold another step's weights, equal steps and single wrong files. Weights move along a path: two
steps with one between them are further apart than that one is from either. Where the one between is further from both
than they are from each other, by a margin, it does not belong there. The rule is applied to whole checkpoints, which
tells swapped steps, and to single tensors.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from embryo_core.errors import BrokenRun
from embryo_core.runs.files import write_json
from embryo_core.runs.manifests import broken, checkpoints, read_config
from embryo_core.runs.reading import read_json
from embryo_core.runs.schema import FaultCard
from embryo_core.types import Checkpoint, Run

AUDIT = "audit.json"  # in the run's folder
OUT_OF_LINE = 0.9  # the neighbours' distance over the larger one to the step between: on a path it is above 1
TENSOR_OUT_OF_LINE = 0.5  # over the smaller one: a single tensor wanders more
LEAP = 4  # times as far as the step before, in proportion to the updates between
REPEATED = ("transformers_version", "_name_or_path", "dtype", "torch_dtype")  # of config.json: no part of the model

Distance = Callable[[int, int], float]  # between two steps


@dataclass(frozen=True)
class Fault:
    """What is wrong with one step, in a sentence; `kind` is for those who count."""

    step: int
    kind: str  # unreadable | missing | equal | swapped | out of line | tensor | not finite | config
    what: str


@dataclass(frozen=True, eq=False)
class Measured:
    """The tensors of one checkpoint: hashes and whether all numbers are finite, by name."""

    step: int
    sha256: Mapping[str, str]
    infinite: tuple[str, ...]


def judge(
    run: Run, measured: Sequence[Measured], distance: Distance, of_tensor: Mapping[str, Distance], unreadable: list[Fault]
) -> list[Fault]:
    """All faults of a run, by step, from what was measured of its readable checkpoints in the order of steps.

    `distance` is that of all weights of two steps, `of_tensor` that of each tensor.
    """
    steps = [one.step for one in measured if not one.infinite]
    swapped, outside = _misplaced(steps, distance)
    wrong = {step for pair in swapped for step in pair} | set(outside)
    equal = _equal(measured)
    faults = [*unreadable, *_missing(run), *_other_configs(run), *equal]
    faults += [Fault(m.step, "not finite", f"{name} holds NaN or infinity") for m in measured for name in m.infinite]
    for one, other in swapped:
        faults += [Fault(a, "swapped", f"its weights seem to be those of step {b}") for a, b in ((one, other), (other, one))]
    faults += [Fault(step, "out of line", "its weights do not lie between those of its neighbours") for step in outside]
    whole = wrong | {fault.step for fault in equal}
    for name, apart in of_tensor.items():
        faults += [
            Fault(step, "tensor", f"{name} does not lie between those of the neighbouring steps")
            for step in _single([step for step in steps if step not in whole], apart)
        ]
    return sorted(faults, key=lambda fault: (fault.step, fault.kind, fault.what))


def write_audit(run: Run, faults: Sequence[Fault]) -> None:
    """Keep what an audit found beside run.json, for the pages."""
    write_json(run.path / AUDIT, {"faults": [asdict(fault) for fault in faults]})


def read_audit(run: Run) -> list[Fault] | None:
    """What the last audit found; None where there was none. Raises BrokenRun."""
    if not (run.path / AUDIT).is_file():
        return None
    card = read_json(run.path / AUDIT, run.path, FaultCard, BrokenRun)
    return [Fault(fault.step, fault.kind, fault.what) for fault in card.faults]


# === Along the path ===


def _misplaced(steps: list[int], distance: Distance) -> tuple[list[tuple[int, int]], list[int]]:
    """Pairs of steps that stand in each other's place, and steps that belong nowhere."""
    swapped, outside, order = [], [], list(steps)
    while (worst := _worst(order, distance)) is not None:
        at = order.index(worst)
        orders = [_exchange(order, worst, other) for other in order if other != worst]
        exchanged = min(orders, key=lambda tried: _bends(tried, distance))
        without = [step for step in order if step != worst]
        if _bends(exchanged, distance) <= min(_bends(without, distance), _bends(order, distance) - 1):
            one, other = sorted((steps[at], steps[exchanged.index(worst)]))
            swapped.append((one, other))
            order = exchanged
        else:
            outside.append(steps[at])
            order, steps = without, [step for i, step in enumerate(steps) if i != at]
    return swapped, outside


def _exchange(order: list[int], one: int, other: int) -> list[int]:
    return [other if step == one else one if step == other else step for step in order]


def _bend(before: int, step: int, after: int, distance: Distance) -> float:
    """How far the path turns back at a step: above 1 it does."""
    far = max(distance(before, step), distance(step, after))
    return OUT_OF_LINE * far / distance(before, after) if distance(before, after) else float(far > 0)


def _triples(order: Sequence[int]) -> list[tuple[int, int, int]]:
    return list(zip(order, order[1:], order[2:], strict=False))


def _bends(order: Sequence[int], distance: Distance) -> int:
    return sum(_bend(*triple, distance) > 1 for triple in _triples(order))


def _worst(order: Sequence[int], distance: Distance) -> int | None:
    """The step at which the path turns back most; None where it does nowhere."""
    bent = [(bend, triple[1]) for triple in _triples(order) if (bend := _bend(*triple, distance)) > 1]
    return max(bent)[1] if bent else None


def _single(steps: Sequence[int], distance: Distance) -> list[int]:
    """Steps at which one tensor leaves the path of its neighbours and comes back, and a last one that leaps."""
    found = []
    for before, step, after in _triples(steps):
        if distance(before, after) < TENSOR_OUT_OF_LINE * min(distance(before, step), distance(step, after)):
            found.append(step)
    if len(steps) > 2:
        before, step, last = steps[-3:]
        usual = distance(before, step) * max(1.0, (last - step) / (step - before))
        if step not in found and distance(step, last) > LEAP * usual > 0:
            found.append(last)
    return found


# === One checkpoint beside the others ===


def _equal(measured: Sequence[Measured]) -> list[Fault]:
    """Steps whose tensors are all those of another step, and tensors that a step has from another, not next to it.

    A tensor that never changes is no fault.
    """
    changing = {name for one in measured for name in one.sha256 if len({m.sha256.get(name) for m in measured}) > 1}
    faults, seen = [], {}
    for one in measured:
        content = tuple(sorted((name, one.sha256[name]) for name in one.sha256 if name in changing))
        if content and (first := seen.setdefault(content, one.step)) != one.step:
            faults += [Fault(one.step, "equal", f"its weights equal those of step {first}")]
            faults += [Fault(first, "equal", f"its weights equal those of step {one.step}")]
    whole = {fault.step for fault in faults}
    for name in sorted(changing):
        first_with: dict[str, int] = {}
        for i, one in enumerate(measured):
            j = first_with.setdefault(one.sha256.get(name, ""), i)
            between = {m.sha256.get(name) for m in measured[j : i + 1]}
            if len(between) > 1 and one.step not in whole:
                faults.append(Fault(one.step, "equal", f"{name} equals that of step {measured[j].step}"))
    return faults


def _missing(run: Run) -> list[Fault]:
    there = {checkpoint.step for checkpoint in checkpoints(run)}
    planned = [step for step in run.planned_steps if there and step < max(there) and step not in there]
    return [Fault(step, "missing", "it was planned, and there is no checkpoint") for step in planned]


def _other_configs(run: Run) -> list[Fault]:
    """Checkpoints with another config.json than most."""
    contents = {checkpoint.step: _config(checkpoint) for checkpoint in checkpoints(run)}
    if not contents:
        return []
    common, _ = Counter(contents.values()).most_common(1)[0]
    return [Fault(step, "config", "its config.json is not that of the others") for step, own in contents.items() if own != common]


def _config(checkpoint: Checkpoint) -> str:
    content: dict[str, Any] = read_config(checkpoint, dict[str, Any])
    return json.dumps({name: value for name, value in content.items() if name not in REPEATED}, sort_keys=True)


def unreadable(run: Run) -> list[Fault]:
    """Checkpoints without a manifest that can be read."""
    return [Fault(0, "unreadable", reason) for _, reason in broken(run)]
