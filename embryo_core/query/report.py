"""Questions as commands, and answers as text for the terminal."""

import shlex
from collections.abc import Iterable, Sequence

import pandas as pd

from embryo_core.query.answers import TOGETHER, Answers
from embryo_core.query.asking import ask, ask_layers
from embryo_core.query.question import Question, parse
from embryo_core.types import Prediction, Run
from embryo_core.words import point, quantity, step_name


def spell_rank(rank: int, exact: bool) -> str:
    """Spell a rank: "5", or "≥ 5" if the true rank is at least that."""
    return f"{rank:,}" if exact else f"≥ {rank:,}"


def commands(run: str, step: int, text: str, word: str, mask: int) -> list[str]:
    """Return the commands that ask a text at one step and at all, track a word, and read every layer.

    For all masks together (TOGETHER) there are only the first two.
    """
    which = ["--mask", str(mask)] if mask > 1 else []
    found = [["--step", str(step)], ["--step", "all"]]
    if mask != TOGETHER:
        found += [["--step", "all", f"--track={word}", *which]] if word else []
        found += [["--step", "all", "--lens", *which]]
    return [command(run, text, *options) for options in found]


def command(run: str, text: str, *options: str) -> str:
    """Return the command that asks a run a text."""
    return shlex.join(["python", "-m", "embryo_core", "query", run, *options, "--", text.strip()])


def report_step(run: Run, text: str, step: int, k: int = 10) -> str:
    """Report the k best answers at one step: for several masks the joint answers, then those for each mask.

    A text that is continued has its greedy continuation first, then the best next pieces. Raises as `ask` does, like
    all reports.
    """
    found = ask(run, text, [step], k)
    blocks = [f"{run.name}, {point(step, run.step_unit)}, {found.question.kind}: {found.question.text}"]
    if found.question.continues:
        (greedy,) = found.best(step, TOGETHER)
        blocks.append(f"Greedy continuation, probability {greedy.probability:.3g}\n{greedy.token}")
    if found.masks > 1:
        blocks.append("All masks together\n" + _ranking(found.best(step, TOGETHER)))
    for mask in range(1, found.masks + 1):
        title = f"[MASK] {mask}, given the best answer before it\n" if found.masks > 1 else ""
        blocks.append(title + _ranking(found.best(step, mask)))
    return "\n\n".join(blocks)


def report_history(run: Run, text: str, steps: Iterable[int] | None = None) -> str:
    """Report the best answer at every checkpoint, or at the given steps, and when the final one took the lead."""
    found = ask(run, text, steps)
    head = f"{run.name}, {quantity(len(found.steps), 'checkpoint')}, {found.question.kind}: {found.question.text}"
    blocks = [head, *found.skipped]
    if found.question.continues:
        blocks.append("Greedy continuation\n" + _continuations(run, found))
    if found.masks > 1:
        blocks.append("All masks together\n" + _history(run, found, TOGETHER))
    for mask in range(1, found.masks + 1):
        blocks.append((f"[MASK] {mask}\n" if found.masks > 1 else "") + _history(run, found, mask))
    return "\n\n".join(blocks)


def report_word(run: Run, text: str, word: str, mask: int = 1, steps: Iterable[int] | None = None) -> str:
    """Report the probability and rank of a word at every checkpoint, or at the given steps."""
    question = parse(run, text).track(word, mask)
    found, pieces = ask(run, question, steps), question.tracked.pieces
    head = [f"{run.name}, {question.tracked.text!r} {_place(question, mask)}: {question.text}"]
    if len(pieces) > 1:
        how = "each after those before it" if question.continues else "filled left to right, other masks in place"
        head.append(
            f"{len(pieces)} pieces, {' '.join(pieces)}: {question.widened}\n"
            f"Joint probability by the chain rule, pieces {how}; "
            "rank among the answers of as many pieces; ≥: at least."
        )
    width = _step_width(found.steps)
    lines = [f"{step_name(run.step_unit):>{width}}  {'probability':>11}  {'rank':>6}"]
    for row in found.table.itertuples():
        lines.append(f"{row.step:>{width},}  {row.probability:>11.3g}  {spell_rank(row.rank, row.exact):>6}")
    return "\n\n".join([*head, *found.skipped, "\n".join(lines)])


def report_layers(
    run: Run,
    text: str,
    mask: int = 1,
    step: int | None = None,
    k: int = 10,
    steps: Iterable[int] | None = None,
) -> str:
    """Report the answers of each layer: the k best at one step, or the best at every checkpoint or the given steps."""
    found = ask_layers(run, text, mask, steps if step is None else [step], 1 if step is None else k)
    where = quantity(len(found.steps), "checkpoint") if step is None else point(step, run.step_unit)
    head = f"{run.name}, {where}, layers {_place(found.question, mask)}: {found.question.text}"
    cells = [f"{token} {share:.1%}" for token, share in found.table[["token", "probability"]].itertuples(index=False)]
    count, layers = len(cells) // len(found.steps), range(int(found.table["layer"].max()) + 1)
    if step is None:
        rows = [(step_name(run.step_unit), *(f"layer {layer}" if layer else "embeddings" for layer in layers))]
        rows += [(f"{one:,}", *cells[i * count : (i + 1) * count]) for i, one in enumerate(found.steps)]
    else:
        count //= len(layers)
        rows = [("layer", *map(str, range(1, count + 1)))]
        rows += [(str(layer), *cells[layer * count : (layer + 1) * count]) for layer in layers]
    return "\n\n".join([head, *found.skipped, _table(rows)])


# === Parts ===


def _place(question: Question, mask: int) -> str:
    return "after the text" if question.continues else f"at [MASK] {mask}"


def _continuations(run: Run, found: Answers) -> str:
    """Return a line for each step."""
    rows = found.history(TOGETHER)
    lines = [(step_name(run.step_unit), "probability", "continuation")]
    lines += [(f"{row.step:,}", f"{row.probability:.3g}", row.token) for row in rows.itertuples()]
    return _table(lines)


def _step_width(steps: Sequence[int]) -> int:
    """Return the width in characters of the column of steps."""
    return max(9, len(f"{max(steps):,}"))


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Align columns to their widest entry, the first to the right."""
    first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].rjust(first), *(cell.ljust(width) for cell, width in zip(row[1:], others, strict=True))])
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _ranking(predictions: Sequence[Prediction]) -> str:
    lines = [f"{'rank':>4}  {'probability':>11}  answer"]
    lines += [f"{spell_rank(p.rank, p.exact):>4}  {p.probability:>11.4%}  {p.token}" for p in predictions]
    return "\n".join(lines)


def _history(run: Run, found: Answers, mask: int) -> str:
    lead, history = found.lead(mask), found.history(mask)
    leaders, final = history[history["leads"]], history[history["token"] == lead.token]
    since = "again at" if lead.for_good == found.steps[-1] else "for good from"
    return _lines(run, leaders, final) + (
        f"\n{lead.token!r} first leads at {point(lead.first, run.step_unit)}"
        + (f", {since} {point(lead.for_good, run.step_unit)}." if lead.first < found.steps[-1] else ", the last.")
    )


def _lines(run: Run, leaders: pd.DataFrame, final: pd.DataFrame) -> str:
    """Return a line for each step; `leaders` and `final` have the rows of the leading and the final answer."""
    own = f"of {final['token'].iat[0]!r}"
    left, right = _step_width(leaders["step"].tolist()), max(14, len(own))
    width = max(len("best answer"), leaders["token"].str.len().max())
    at = step_name(run.step_unit)
    lines = [f"{at:>{left}}  {'best answer':<{width}}  {'probability':>11}  {own:>{right}}  {'rank':>6}"]
    for best, one in zip(leaders.itertuples(), final.itertuples(), strict=True):
        line = f"{best.step:>{left},}  {best.token:<{width}}  {best.probability:>11.4%}  {one.probability:>{right}.4%}"
        lines.append(f"{line}  {spell_rank(one.rank, one.exact):>6}")
    return "\n".join(lines)
