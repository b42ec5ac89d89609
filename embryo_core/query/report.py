"""Questions as commands, and answers as text for the terminal."""

import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pandas as pd

from embryo_core.query.answers import TOGETHER, Answers
from embryo_core.query.asking import ask, ask_layers
from embryo_core.query.question import Question, parse
from embryo_core.types import Prediction, Run
from embryo_core.words import name_step, quantity, step_unit_name


def spell_rank(rank: int, exact: bool) -> str:
    """Spell a rank: "5", or "≥ 5" if it is a lower bound."""
    return f"{rank:,}" if exact else f"≥ {rank:,}"


def commands(run: str, step: int, text: str, word: str, mask: int) -> list[str]:
    """Return commands that ask a text at one step and at all steps, and (for one mask) track a word and read layers."""
    which = ["--mask", str(mask)] if mask > 1 else []
    choices = [["--step", str(step)], ["--step", "all"]]
    if mask != TOGETHER:
        choices += [["--step", "all", f"--track={word}", *which]] if word else []
        choices += [["--step", "all", "--lens", *which]]
    return [command(run, text, *options) for options in choices]


def command(run: str, text: str, *options: str) -> str:
    """Return the command that asks a run to fill or continue a text."""
    return shlex.join(["python", "-m", "embryo_core", "query", run, *options, "--", text.strip()])


def report_step(run: Run, text: str, step: int, k: int = 10) -> str:
    """Report the k best answers at one step: for several masks the joint answers, then the answers to each mask.

    For a continued text, report the greedy continuation, then the best next pieces. All reports raise as `ask` does.
    """
    answers = ask(run, text, [step], k)
    blocks = [f"{run.name}, {name_step(step, run.step_unit)}, {answers.question.kind}: {answers.question.text}"]
    if answers.question.continues:
        (greedy,) = answers.best(step, TOGETHER)
        blocks.append(f"Greedy continuation, probability {greedy.probability:.3g}\n{greedy.token}")
    if answers.masks > 1:
        blocks.append("All masks together\n" + _ranking(answers.best(step, TOGETHER)))
    for mask in range(1, answers.masks + 1):
        title = f"[MASK] {mask}, given the best answer before it\n" if answers.masks > 1 else ""
        blocks.append(title + _ranking(answers.best(step, mask)))
    return "\n\n".join(blocks)


def report_history(run: Run, text: str, steps: Iterable[int] | None = None) -> str:
    """Report the best answer at every checkpoint, or at given steps, and when the final answer took the lead."""
    answers = ask(run, text, steps)
    heading = (
        f"{run.name}, {quantity(len(answers.steps), 'checkpoint')}, {answers.question.kind}: {answers.question.text}"
    )
    blocks = [heading, *answers.skipped]
    if answers.question.continues:
        blocks.append("Greedy continuation\n" + _continuations(run, answers))
    if answers.masks > 1:
        blocks.append("All masks together\n" + _history(run, answers, TOGETHER))
    for mask in range(1, answers.masks + 1):
        blocks.append((f"[MASK] {mask}\n" if answers.masks > 1 else "") + _history(run, answers, mask))
    return "\n\n".join(blocks)


def report_word(run: Run, text: str, word: str, mask: int = 1, steps: Iterable[int] | None = None) -> str:
    """Report the probability and rank of a word at every checkpoint, or at given steps."""
    question = parse(run, text).track(word, mask)
    answers, pieces = ask(run, question, steps), question.tracked.pieces
    heading = [f"{run.name}, {question.tracked.text!r} {_place(question, mask)}: {question.text}"]
    if len(pieces) > 1:
        filling = "each after those before it" if question.continues else "filled left to right, other masks in place"
        heading.append(
            f"{len(pieces)} pieces, {' '.join(pieces)}: {question.widened}\n"
            f"Joint probability by the chain rule, pieces {filling}; "
            "rank among the answers of as many pieces; ≥: at least."
        )
    rows = [(step_unit_name(run.step_unit), "probability", "rank")]
    rows += [(f"{row.step:,}", f"{row.probability:.3g}", _rank(row)) for row in answers.table.itertuples()]
    return "\n\n".join([*heading, *answers.skipped, _table(rows)])


def report_layers_at_step(run: Run, text: str, step: int, mask: int = 1, k: int = 10) -> str:
    """Report the k best answers of each layer at one step."""
    answers = ask_layers(run, text, mask, [step], k)
    by_layer = [(str(layer), *_shares(rows)) for layer, rows in answers.table.groupby("layer")]
    titles = ("layer", *map(str, range(1, len(by_layer[0]))))
    return _layers(run, answers, mask, name_step(step, run.step_unit), [titles, *by_layer])


def report_layers(run: Run, text: str, mask: int = 1, steps: Iterable[int] | None = None) -> str:
    """Report the best answer of each layer at every checkpoint, or at given steps."""
    answers = ask_layers(run, text, mask, steps, k=1)
    by_step = [(f"{step:,}", *_shares(rows)) for step, rows in answers.table.groupby("step")]
    layers = ("embeddings", *(f"layer {layer}" for layer in range(1, len(by_step[0]) - 1)))
    titles = (step_unit_name(run.step_unit), *layers)
    return _layers(run, answers, mask, quantity(len(answers.steps), "checkpoint"), [titles, *by_step])


# === Parts ===


def _place(question: Question, mask: int) -> str:
    return "after the text" if question.continues else f"at [MASK] {mask}"


def _shares(rows: pd.DataFrame) -> list[str]:
    """Return each answer with its probability."""
    return [f"{row.token} {row.probability:.1%}" for row in rows.itertuples()]


def _layers(run: Run, answers: Answers, mask: int, where: str, rows: list[tuple[str, ...]]) -> str:
    """Return the report on layers: a heading, reasons for omissions, and these rows as a table."""
    head = f"{run.name}, {where}, layers {_place(answers.question, mask)}: {answers.question.text}"
    return "\n\n".join([head, *answers.skipped, _table(rows, texts=range(1, len(rows[0])))])


def _continuations(run: Run, answers: Answers) -> str:
    """Return a table with the greedy continuation at each step."""
    rows = answers.history(TOGETHER)
    lines = [(step_unit_name(run.step_unit), "probability", "continuation")]
    lines += [(f"{row.step:,}", f"{row.probability:.3g}", row.token) for row in rows.itertuples()]
    return _table(lines, texts=[2])


def _table(rows: Sequence[tuple[str, ...]], texts: Collection[int] = ()) -> str:
    """Align columns to their widest entry: columns in `texts` to the left, all others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    formats = [f"{'<' if column in texts else '>'}{width}" for column, width in enumerate(widths)]
    lines = ["  ".join(map(format, row, formats)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _rank(row: Any) -> str:
    return spell_rank(row.rank, row.exact)


def _ranking(predictions: Sequence[Prediction]) -> str:
    rows = [("rank", "probability", "answer")]
    return _table(
        rows + [(_rank(prediction), f"{prediction.probability:.4%}", prediction.token) for prediction in predictions],
        texts=[2],
    )


def _history(run: Run, answers: Answers, mask: int) -> str:
    """Return a table of the leading and the final answer at each step, and when the final answer took the lead."""
    lead, history, unit = answers.lead(mask), answers.history(mask), run.step_unit
    leaders, final = history[history["leads"]], history[history["token"] == lead.token]
    rows = [(step_unit_name(unit), "best answer", "probability", f"of {lead.token!r}", "rank")]
    for leader, row in zip(leaders.itertuples(), final.itertuples(), strict=True):
        probabilities = f"{leader.probability:.4%}", f"{row.probability:.4%}"
        rows.append((f"{leader.step:,}", leader.token, *probabilities, _rank(row)))
    phrase = "again at" if lead.for_good == answers.steps[-1] else "for good from"
    rest = f", {phrase} {name_step(lead.for_good, unit)}." if lead.first < answers.steps[-1] else ", the last."
    return f"{_table(rows, texts=[1])}\n{lead.token!r} first leads at {name_step(lead.first, unit)}{rest}"
