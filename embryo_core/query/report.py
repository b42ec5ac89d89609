"""Answers and traces as text for the terminal."""

from collections.abc import Iterable, Sequence

from embryo_core import query
from embryo_core.query.lens import lens
from embryo_core.query.trace import AnswerHistory, trace
from embryo_core.query.track import track
from embryo_core.types import Prediction, Run
from embryo_core.words import point, quantity, step_name


def report_answers(run: Run, text: str, step: int, k: int = 10) -> str:
    """What one checkpoint answers: the best joint answers where there are several masks, then the best for each mask.

    Raises as `query.answer` does.
    """
    found = query.answer(run, text, step, k)
    blocks = [f"{run.name}, {point(step, run.step_unit)}: {found.text}"]
    if len(found.masks) > 1:
        blocks.append("All masks together\n" + _ranking(found.joint))
    for i, predictions in enumerate(found.masks, start=1):
        title = f"[MASK] {i}, given the best answer before it\n" if len(found.masks) > 1 else ""
        blocks.append(title + _ranking(predictions))
    return "\n\n".join(blocks)


def report_trace(run: Run, text: str, steps: Iterable[int] | None = None) -> str:
    """The best answer at every checkpoint, or at the given steps, and when the final one led; errors as for `trace`."""
    found = trace(run, text, steps=steps)
    blocks = [f"{run.name}, {quantity(len(found.steps), 'checkpoint')}: {found.text}", *found.skipped]
    histories = [("All masks together\n", found.joint)] if found.joint else []
    histories += [(f"[MASK] {i}\n" if found.joint else "", history) for i, history in enumerate(found.masks, start=1)]
    return "\n\n".join([*blocks, *(title + _history(run, found.steps, history) for title, history in histories)])


def report_track(run: Run, text: str, word: str, mask: int = 1, steps: Iterable[int] | None = None) -> str:
    """Probability and rank of a word at every step, or at the given ones; errors as for `track`."""
    found = track(run, text, word, mask, steps)
    head = [f"{run.name}, {found.word!r} at [MASK] {mask}: {found.text}"]
    if len(found.pieces) > 1:
        head.append(
            f"{len(found.pieces)} pieces, {' '.join(found.pieces)}: {found.widened}\n"
            "Joint probability by the chain rule, pieces filled left to right, other masks in place; "
            "rank among the answers of as many pieces; ≥: at least."
        )
    width = _width_of(found.steps)
    lines = [f"{step_name(run.step_unit):>{width}}  {'probability':>11}  {'rank':>6}"]
    for step, probability, *rank in zip(found.steps, found.probabilities, found.ranks, found.exact, strict=True):
        lines.append(f"{step:>{width},}  {probability:>11.3g}  {query.spell_rank(*rank):>6}")
    return "\n\n".join([*head, *found.skipped, "\n".join(lines)])


def report_lens(
    run: Run,
    text: str,
    mask: int = 1,
    step: int | None = None,
    k: int = 10,
    steps: Iterable[int] | None = None,
) -> str:
    """What each layer would answer: the k best at one step, or the best at the given steps or at every checkpoint.

    Raises as `lens` does.
    """
    found = lens(run, text, mask, 1 if step is None else k, steps if step is None else [step])
    where = quantity(len(found.steps), "checkpoint") if step is None else point(step, run.step_unit)
    head = f"{run.name}, {where}, layers at [MASK] {mask}: {found.text}"
    if step is None:
        rows = [(step_name(run.step_unit), *(f"layer {layer}" if layer else "embeddings" for layer in found.layers))]
        for number, layers in zip(found.steps, found.cells, strict=True):
            rows.append((f"{number:,}", *(_word(best) for (best,) in layers)))
    else:
        rows = [("layer", *map(str, range(1, len(found.cells[0][0]) + 1)))]
        rows += [(str(layer), *map(_word, best)) for layer, best in zip(found.layers, found.cells[0], strict=True)]
    return "\n\n".join([head, *found.skipped, _table(rows)])


def _width_of(steps: Sequence[int]) -> int:
    """Characters of the column of steps."""
    return max(9, len(f"{max(steps):,}"))


def _word(prediction: Prediction) -> str:
    return f"{prediction.token} {prediction.probability:.1%}"


def _table(rows: list[tuple[str, ...]]) -> str:
    """Columns as wide as their widest entry, the first aligned to the right."""
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].rjust(first), *(cell.ljust(width) for cell, width in zip(row[1:], others, strict=True))])
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _ranking(predictions: Sequence[Prediction]) -> str:
    lines = [f"{'rank':>4}  {'probability':>11}  answer"]
    lines += [f"{query.spell_rank(p.rank, p.exact):>4}  {p.probability:>11.4%}  {p.token}" for p in predictions]
    return "\n".join(lines)


def _history(run: Run, steps: tuple[int, ...], history: AnswerHistory) -> str:
    by_token = {candidate.token: candidate for candidate in history.candidates}
    final = by_token[history.leaders[-1]]
    left, width, own = _width_of(steps), max(len("best answer"), *map(len, history.leaders)), f"of {final.token!r}"
    right = max(14, len(own))
    at = step_name(run.step_unit)
    lines = [f"{at:>{left}}  {'best answer':<{width}}  {'probability':>11}  {own:>{right}}  {'rank':>6}"]
    for i, (step, leader) in enumerate(zip(steps, history.leaders, strict=True)):
        rank = query.spell_rank(final.ranks[i], final.exact[i])
        probability, of_final = by_token[leader].probabilities[i], final.probabilities[i]
        lines.append(f"{step:>{left},}  {leader:<{width}}  {probability:>11.4%}  {of_final:>{right}.4%}  {rank:>6}")
    first, good = (point(step, run.step_unit) for step in (history.first_led, history.leads_from))
    lines.append(f"{final.token!r} first leads at {first}, for good from {good}.")
    return "\n".join(lines)
