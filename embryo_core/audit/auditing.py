"""Audit a run: measure every checkpoint, compare it with the rest of the series, and describe faults in sentences."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from tqdm import tqdm

from embryo_core import runs
from embryo_core.audit import files
from embryo_core.audit.equal import MIN_NUMBERS, Twins, find_equal_steps, find_equal_tensors
from embryo_core.audit.odd_tensors import find_odd_tensors
from embryo_core.audit.order import ForeignSteps, find_foreign_steps, find_misplaced_shard, find_misplaced_steps
from embryo_core.audit.series import TensorSeries
from embryo_core.engine.capabilities import checkpoint_capabilities
from embryo_core.engine.hub_cache import prefetch_checkpoints, uncached_pointers
from embryo_core.engine.model import read_model
from embryo_core.engine.tensor_statistics import TensorMeter, TensorStatistics
from embryo_core.errors import BrokenCheckpoint, EmbryoError, MissingWeights, printable
from embryo_core.runs import Audit, Fault
from embryo_core.types import Checkpoint, Run, StepUnit
from embryo_core.words import join_steps, name_step, percent, quantity

REMEDY = "get the right file from where it came from, or leave the step out"
MIN_CHECKPOINTS = 3  # fewest checkpoints that can be compared
MAX_READ_BYTES = 2**30  # larger weights are not read to check whether the model can be queried


def audit(run: Run, fetch: bool = True, discard: bool = False, progress: bool = False) -> Audit:
    """Audit every checkpoint with weights, write the faults to audit.json for the dashboard, and return them.

    Weights on the Hub are fetched, and with `discard` removed afterwards; without `fetch`, only cached weights are
    audited.
    """
    all_checkpoints = runs.checkpoints(run)
    loadable = [one for one in all_checkpoints if one.has_weights and (fetch or _is_local(one))]
    faults = [
        Fault(files.steps_in_name(path.name), "unreadable", reason) for path, reason in runs.broken_checkpoints(run)
    ]
    faults += [
        *files.find_missing_steps(run),
        *files.find_exchanged_folders(all_checkpoints),
        *files.find_other_configs(all_checkpoints),
    ]
    faults += [*files.check_own_tokenizer(run), *files.find_other_tokenizers(loadable)]
    faults += files.find_equal_weights(all_checkpoints, loadable, is_frozen := _frozen_steps(run))
    statistics = []
    meter = TensorMeter(len(loadable))
    fetches, is_shown = prefetch_checkpoints(loadable, discard), progress and bool(loadable)
    for checkpoint, missing in tqdm(fetches, run.name, len(loadable), unit="checkpoint", disable=not is_shown):
        try:
            if missing:
                raise missing
            statistics.append(meter.measure(checkpoint))
        except (BrokenCheckpoint, MissingWeights) as reason:
            faults.append(Fault((checkpoint.step,), "unreadable", str(reason)))
    faults += find_faults(statistics, is_frozen, run.step_unit)
    result = Audit(tuple(sorted(faults, key=lambda fault: (fault.steps, fault.kind, fault.what))), len(loadable))
    runs.write_audit(run, result)
    return result


def find_faults(
    statistics: Sequence[TensorStatistics], is_frozen: Callable[[int, int], bool], unit: StepUnit
) -> list[Fault]:
    """Return the faults of tensors; `is_frozen(i, j)` says whether no weight could move from step i to the next, j."""
    faults = [_infinite_fault(entry, unit) for entry in statistics if entry.infinite]
    usual_shapes = Counter(entry.shapes for entry in statistics).most_common(1)[0][0] if statistics else ()
    faults += [
        _fault([entry.step], "config", SHAPES_MESSAGE, unit) for entry in statistics if entry.shapes != usual_shapes
    ]
    comparable = [entry for entry in statistics if entry.shapes == usual_shapes and not entry.infinite]
    if len(comparable) < MIN_CHECKPOINTS:
        return faults
    steps, hashes = [entry.step for entry in comparable], [entry.sha256 for entry in comparable]
    groups = find_equal_steps(hashes, lambda i, j: is_frozen(steps[i], steps[j]))
    faults += [_fault([steps[i] for i in group], "equal", EQUAL_MESSAGE, unit) for group in groups]
    series = _series(comparable)
    first_with = {hashes[i]: i for i in reversed(range(len(comparable)))}

    def steps_equal_to(i: int) -> list[int]:
        return [step for step, content in zip(steps, hashes, strict=True) if content == hashes[i]]

    remaining = [
        i for i in range(len(comparable)) if first_with[hashes[i]] == i and not any(i in group for group in groups)
    ]
    foreign = find_foreign_steps(series, remaining)
    if len(foreign) == 1:  # several may be copies of one checkpoint
        remaining = [i for i in remaining if i not in foreign[0].steps]
    misplaced_steps = find_misplaced_steps(series, remaining)
    faults += [_fault([steps[i], steps[j]], "swapped", SWAPPED_MESSAGE, unit) for i, j in misplaced_steps.swapped]
    faults += [_fault(steps_equal_to(i), "out of line", OUTSIDE_MESSAGE, unit) for i in misplaced_steps.outside]
    remaining = [i for i in remaining if i not in misplaced_steps.indices]
    foreign = [*(foreign if len(foreign) == 1 else ()), *find_foreign_steps(series, remaining)]
    faults += [
        _foreign_fault([step for i in group.steps for step in steps_equal_to(i)], series, group, unit)
        for group in foreign
    ]
    remaining = [i for i in remaining if not any(i in group.steps for group in foreign)]
    twins = find_equal_tensors(series, hashes, remaining)
    faults += [_twins_fault(series, group, unit) for group in twins]
    return faults + _odd_faults(series, remaining, twins, unit)


def _series(statistics: Sequence[TensorStatistics]) -> TensorSeries:
    """Return the tensors of checkpoints, with exact distances if they were measured, else those of the sketches."""

    @lru_cache(maxsize=100_000)
    def sketched_distance(i: int, j: int) -> np.ndarray:
        return np.linalg.norm(statistics[i].sketches - statistics[j].sketches, axis=1).astype(float)

    def distance(i: int, j: int) -> np.ndarray:
        earlier, later = sorted((i, j))
        exact = statistics[later].moved.get(statistics[earlier].step)
        return sketched_distance(i, j) if exact is None else exact

    shapes = statistics[0].shapes
    tensor_sizes = np.array([np.prod(shape, dtype=float) for _, shape in shapes])
    norms = np.array([entry.norms for entry in statistics]).T
    steps, names = tuple(entry.step for entry in statistics), tuple(name for name, _ in shapes)
    return TensorSeries(steps, names, tensor_sizes, statistics[0].resolution, norms, distance, sketched_distance)


def _frozen_steps(run: Run) -> Callable[[int, int], bool]:
    """Return a predicate: whether the learning rate was 0 at every logged update between two steps.

    transformers' Trainer logs the rate of the next update, so the rate of the first update is not logged. It was 0 if
    the first logged rates rise linearly from 0, as in a warm-up; this is assumed if fewer than two are logged.
    """
    rates = {row["step"]: row.get("learning_rate") for row in runs.read_log(run) if row["split"] == "train"}
    offset = int(runs.was_added(run.path))
    first_rates = [(step, rate) for step, rate in rates.items() if rate is not None][:2]
    is_warm_up = offset > 0
    if len(first_rates) == 2:  # in a linear warm-up, rates are proportional to steps
        (start, first_rate), (end, second_rate) = first_rates
        is_warm_up &= bool(np.isclose(first_rate * end, second_rate * start, rtol=0.01, atol=0))

    def is_frozen(start: int, end: int) -> bool:
        if is_warm_up and (start, end) == (0, 1):
            return True
        rates_between = [rate for step, rate in rates.items() if start < step + offset <= end]
        return bool(rates_between) and not any(rate is None or rate for rate in rates_between)

    return is_frozen


def _is_local(checkpoint: Checkpoint) -> bool:
    try:
        return not uncached_pointers(checkpoint)
    except BrokenCheckpoint:
        return True  # the error is reported when the checkpoint is read


# === Whether a run can be queried ===


def explain_unanswerable(run: Run) -> str:
    """Return a sentence on why the last local checkpoint cannot be queried; "" if it can, or was not checked."""
    last = next(
        (
            checkpoint
            for checkpoint in reversed(runs.checkpoints(run))
            if checkpoint.has_weights and _has_files(checkpoint)
        ),
        None,
    )
    if not last:
        return ""
    capabilities = checkpoint_capabilities(last)
    if not capabilities & {"masked_words", "next_words"}:
        capability_text = " and ".join(name.replace("_", " ") for name in sorted(capabilities - {"trainable"}))
        return f"No question can be asked: there is no head for words; checkpoints give {capability_text or 'nothing'}."
    if runs.weights_file(last).stat().st_size > MAX_READ_BYTES:
        return ""
    try:
        read_model(last)
    except EmbryoError as reason:
        return f"No question can be asked: {reason}"
    return ""


def _has_files(checkpoint: Checkpoint) -> bool:
    try:
        return runs.weights_file(checkpoint).is_file()
    except BrokenCheckpoint:
        return False


# === Sentences ===


SHAPES_MESSAGE = f"The checkpoint at {{}} has tensors of other names or shapes than most; {REMEDY}."
EQUAL_MESSAGE = f"The checkpoints at {{}} have the same weights, number by number; {REMEDY}."
SWAPPED_MESSAGE = (
    "The checkpoints at {} seem to hold each other's weights: exchanged, they are between neighbours; compare both "
    "with their source, and exchange them."
)
OUTSIDE_MESSAGE = (
    f"The weights at {{}} are not between those of the neighbouring steps, nor do they fit another step; {REMEDY}."
)


def _fault(steps: Sequence[int], fault_type: str, text: str, unit: StepUnit) -> Fault:
    return Fault(tuple(steps), fault_type, text.format(join_steps(steps, unit)))


def _infinite_fault(entry: TensorStatistics, unit: StepUnit) -> Fault:
    names, are_several = _list_tensors(entry.infinite)
    text = f"{names} at {name_step(entry.step, unit)} {'hold' if are_several else 'holds'} NaN or infinity; {REMEDY}."
    return Fault((entry.step,), "not finite", text)


def _foreign_fault(steps: Sequence[int], series: TensorSeries, foreign: ForeignSteps, unit: StepUnit) -> Fault:
    """Return the fault of steps that come from another training, with the share of weights kept across the break."""
    step_before, step_after = (name_step(series.steps[i], unit) for i in (foreign.before, foreign.after))
    text = (
        f"The weights at {join_steps(steps, unit)} come from another training than the others, such as another seed: "
        f"{step_after} keeps {percent(max(foreign.kept_share, 0), 0)} of {step_before}, by the cosines of large "
        f"tensors; {REMEDY}."
    )
    return Fault(tuple(steps), "out of line", text)


def _twins_fault(series: TensorSeries, twins: Twins, unit: StepUnit) -> Fault:
    step = series.steps[twins.step]
    name, twin_name = name_step(step, unit), name_step(series.steps[twins.equal_step], unit)
    names, are_several = _list_tensors([series.names[tensor] for tensor in twins.tensors])
    text = f"{names} at {name} {'are those' if are_several else 'is that'} at {twin_name}, number by number; {REMEDY}."
    return Fault((step,), "tensor", text)


def _list_tensors(tensors: Sequence[str]) -> tuple[str, bool]:
    """Return the first tensor's name with the number of further tensors, and whether there are several."""
    rest = f" and {quantity(len(tensors) - 1, 'more tensor')}" if len(tensors) > 1 else ""
    return printable(tensors[0]) + rest, bool(rest)


def _odd_faults(series: TensorSeries, indices: Sequence[int], twins: Sequence[Twins], unit: StepUnit) -> list[Fault]:
    """Return a fault for each step with tensors out of line; at steps with `twins`, only large tensors count."""
    reported_pairs = {(tensor, group.step) for group in twins for tensor in group.tensors}
    steps_of_shards = {group.step for group in twins}
    tensors_at: dict[int, list[int]] = {}
    names, shard = find_misplaced_shard(series, [step for step in indices if step not in steps_of_shards])
    for step in shard.indices:
        tensors_at[step] = [series.names.index(name) for name in names]
        reported_pairs |= {(tensor, step) for tensor in tensors_at[step]}
    for tensor, step in find_odd_tensors(series, indices, reported_pairs):
        if step not in steps_of_shards or series.sizes[tensor] >= MIN_NUMBERS:
            tensors_at.setdefault(step, []).append(tensor)
    return [_tensor_fault(series, tensors, step, indices, unit) for step, tensors in tensors_at.items()]


def _tensor_fault(
    series: TensorSeries, tensors: Sequence[int], step: int, indices: Sequence[int], unit: StepUnit
) -> Fault:
    """Return the fault of tensors at a step, with the first one's norm and cosines beside those of the neighbours."""
    tensor, k = tensors[0], indices.index(step)
    adjacent = [indices[j] for j in (k - 1, k + 1) if 0 <= j < len(indices)]
    norms = " and ".join(f"{series.norms[tensor, j]:.3g}" for j in adjacent)
    cosines = " and ".join(f"{series.cosines(step, j)[tensor]:.2f}" for j in adjacent)
    cosines_to_first = [f"{series.cosines(0, j)[tensor]:.2f}" for j in (step, *adjacent)]
    neighbours = join_steps([series.steps[j] for j in adjacent], unit)
    names, are_several = _list_tensors([series.names[i] for i in tensors])
    text = (
        f"{names} at {name_step(series.steps[step], unit)} {'are' if are_several else 'is'} out of line with "
        f"{'those' if are_several else 'that'} at {neighbours}: {'the first has ' if are_several else ''}"
        f"norm {series.norms[tensor, step]:.3g} against {norms}, "
        f"cosine {cosines} to them, and {cosines_to_first[0]} against {' and '.join(cosines_to_first[1:])} to the "
        f"first step; {REMEDY}."
    )
    return Fault((series.steps[step],), "tensor", text)
