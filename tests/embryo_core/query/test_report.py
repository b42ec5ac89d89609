"""Tests of reports in the terminal: they show what the functions behind them return."""

import shlex
from dataclasses import replace

import pytest

from embryo_core import query
from embryo_core.errors import QueryError
from embryo_core.query import report
from embryo_core.query.report import report_history, report_step
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run

ONE = "The cat sat on the [MASK] ."


def test_report_of_one_step_lists_the_answers(tiny_run: Run) -> None:
    """There is one line per prediction, in the order of ranks."""
    expected = query.ask(tiny_run, "a [MASK] .", [8], 3).best(8)
    lines = report_step(tiny_run, "a [mask] .", 8, k=3).splitlines()
    assert lines[0] == "tiny, step 8, [MASK] filled: a [MASK] ."
    assert [line.split() for line in lines[3:]] == [[str(p.rank), f"{p.probability:.4%}", p.token] for p in expected]


def test_joint_answers_come_before_those_of_each_mask(tiny_run: Run) -> None:
    text = report_step(tiny_run, "[MASK] and [MASK]", 16)
    assert text.index("All masks together") < text.index("[MASK] 1, given") < text.index("[MASK] 2, given")


def test_history_report_has_the_leader_of_each_step(tiny_run: Run) -> None:
    """Each line also has the leader's probability, and the final answer's probability and rank; leaders change."""
    answers = query.ask(tiny_run, ONE)
    lead, leaders = answers.lead(), answers.leaders()
    assert len({*leaders.values()}) > 1
    *lines, last = report_history(tiny_run, ONE).splitlines()
    rows = {(row.step, row.token): row for row in answers.history().itertuples()}
    for line, (step, leader) in zip(lines[3:6], leaders.items(), strict=True):
        final = rows[step, lead.token]
        shares = [f"{row.probability:.4%}" for row in (rows[step, leader], final)]
        assert line.split() == [str(step), leader, *shares, f"{final.rank:,}"]
    assert (lead.first, lead.for_good) == (16, 16)  # the last step alone is not for good
    assert repr(lead.token) in last and "step 16," in last and "good" not in last
    assert "All masks together" in report_history(tiny_run, "[MASK] and [MASK]")


@pytest.mark.parametrize("word", ["cat", "rivers"])
def test_word_report_has_probability_and_rank_at_each_step(tiny_run: Run, word: str) -> None:
    """Probabilities have three digits; the rank of a word of several pieces may be a lower bound."""
    answers = query.ask(tiny_run, query.read_question(ONE, load_tokenizer(tiny_run)).track(word))
    head, *lines = [line.split() for line in report.report_word(tiny_run, ONE, word).splitlines()[-4:]]
    assert head == ["step", "probability", "rank"]
    for line, row in zip(lines, answers.table.itertuples(), strict=True):
        spelled = query.spell_rank(row.rank, row.exact)
        assert line == [str(row.step), f"{row.probability:.3g}", *spelled.split()]


def test_layer_report_has_the_answers_of_each_layer(tiny_run: Run) -> None:
    """Over all steps, each layer has a column with its best answer; at one step, a line with its two best."""
    layer_answers = query.ask_layers(tiny_run, ONE, k=2)

    def cells(step: int, layer: int, count: int) -> list[str]:
        best = layer_answers.best(step, layer=layer)[:count]
        return [text for answer in best for text in (answer.token, f"{answer.probability:.1%}")]

    head, *rows = [line.split() for line in report.report_layers(tiny_run, ONE).splitlines()[-4:]]
    assert head == ["step", "embeddings", "layer", "1", "layer", "2"]
    assert rows == [[str(step), *(cell for layer in range(3) for cell in cells(step, layer, 1))] for step in (0, 8, 16)]
    head, *rows = [line.split() for line in report.report_layers_at_step(tiny_run, ONE, 8, k=2).splitlines()[-4:]]
    assert head == ["layer", "1", "2"]
    assert rows == [[str(layer), *cells(8, layer, 2)] for layer in range(3)]


def test_columns_are_as_wide_as_their_longest_number() -> None:
    """Steps may count tokens and then have twelve digits."""
    rows = [("step", "rank"), ("0", "1"), (f"{400_000_000_000:,}", "12")]
    assert {len(line) for line in report._table(rows).splitlines()} == {len("400,000,000,000  rank")}


def test_reports_use_the_step_unit_of_the_run(tiny_run: Run) -> None:
    """Steps count words in the reports of one step, of all steps, of a tracked word, and of the layers."""
    run, text = replace(tiny_run, step_unit="words"), "a [MASK] ."
    assert report_step(run, text, 8).startswith("tiny, 8 words, ")
    assert report.report_layers_at_step(run, text, 8).startswith("tiny, 8 words, layers")
    lead = query.ask(run, text).lead()
    for lines in (report_history(run, text), report.report_word(run, text, "cat"), report.report_layers(run, text)):
        assert any(line.split()[:1] == ["words"] for line in lines.splitlines()) and "step" not in lines
    assert f" {lead.first:,} words, " in report_history(run, text)


@pytest.mark.parametrize(("word", "mask", "count"), [("", 1, 3), ("Paris", 2, 4), ("Paris", query.TOGETHER, 2)])
def test_commands_ask_the_same_question(word: str, mask: int, count: int) -> None:
    """They ask at one step, at all steps, for the word, and by layer; the last two are for one of the masks."""
    text = "--x '$(rm)' [MASK] and [MASK] ."
    commands = query.commands("tiny", 8, f" {text} ", word, mask)
    assert len(commands) == count
    for command in commands:
        python, dash_m, module, *arguments = shlex.split(command)
        assert (python, dash_m, module) == ("python", "-m", "embryo_core") and arguments[-2:] == ["--", text]
        assert ("--mask" in arguments) == (mask == 2 and ("--lens" in arguments or f"--track={word}" in arguments))


def test_text_without_mask_is_refused(tiny_run: Run) -> None:
    with pytest.raises(QueryError, match="no \\[MASK\\]"):
        report_history(tiny_run, "nothing")
