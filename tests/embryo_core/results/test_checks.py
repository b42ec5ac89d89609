"""Tests that invalid rows are refused when results are written and when they are read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.measurements import (
    AttentionMap,
    ClozeAnswer,
    Findings,
    ListedWordSurprisal,
    PairScore,
    ProbeCurve,
    Score,
    SpanAnswer,
    TaskAnswer,
    TaskScore,
    TuningPoint,
    WordCount,
)
from embryo_core.results.checks import bounds_of, check_keys, check_rows
from embryo_core.results.tables import (
    ATTENTION,
    CLOZE,
    PROBES,
    SCORES,
    SPANS,
    TASK_SCORES,
    TUNING,
    WORDS,
    Table,
)
from embryo_core.types import Run
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import tree

# === After reading ===


BOUNDS = bounds_of(Run("unknown sizes", Path(), "", "", {}, "", {}, (), ""))
VALUES = {pa.string(): "a", pa.bool_(): True, pa.large_binary(): b"\0\0"}  # values of other types are 1


def rows(table: Table, column: str, *values: Any) -> pa.Table:
    """Return valid rows, except for the given values of one column."""
    plain = {field.name: [VALUES.get(field.type, 1)] * len(values) for field in table.schema}
    return pa.table(plain | {column: values}, schema=table.schema)


@pytest.mark.parametrize(
    ("table", "column", "within", "beyond"),
    [
        (SCORES, "n", [1, 2**40], [0, -1]),
        (SCORES, "step", [0, 2**40], [-1]),
        (SCORES, "layer", [0, None, 1024], [-1, 1025]),
        (SCORES, "value", [-5.0, 1e9], [float("nan"), float("inf")]),
        (WORDS, "correct", [0, 1], [-1, 2]),
        (CLOZE, "rank", [1, 30_000], [0]),
        (CLOZE, "probability", [0.0, 1.0], [-0.01, 1.01, float("nan")]),
        (CLOZE, "prediction", ["", "a" * 4096], ["a" * 4097]),
        (ATTENTION, "head", [1, 1024], [0, 1025]),
        (ATTENTION, "weights", [b"\0\0"], [b"", b"\0" * 8, b"\0\x7c", b"\1\xfe"]),
        (PROBES, "dev_f1", [0.0, 1.0], [-0.01, 1.01]),
        (PROBES, "train_loss", [0.0, 99.0], [float("nan")]),
        (TASK_SCORES, "seed", [0, 1], [-1]),
        (TUNING, "update", [1, 9], [0]),
        (TUNING, "dev_score", [-1.0, 1.0], [-1.01, 1.01]),
        (SPANS, "start", [0, 1], [-1, 2]),
        (SPANS, "exact", [0.0, 1.0], [-0.01, 1.01]),
        (SPANS, "f1", [0.0, 1.0], [-0.01, 1.01, float("nan")]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_out_of_bounds_are_refused(table: Table, column: str, within: list, beyond: list):
    """A single value out of bounds, on either side, is enough."""
    check_rows(table, rows(table, column, *within), BOUNDS)
    for value in beyond:
        with pytest.raises(ValueError, match=f"{column} .* is out of bounds|another length|not finite|more than"):
            check_rows(table, rows(table, column, *within, value), BOUNDS)


def test_layers_and_heads_are_bounded_by_the_model(run: Run):
    """Layer 0 is the embeddings."""
    run = replace(run, config={"num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 2})
    check_rows(SCORES, rows(SCORES, "layer", 0, 2, None), bounds_of(run))
    check_rows(ATTENTION, rows(ATTENTION, "head", 1, 2), bounds_of(run))
    for table, column in ((SCORES, "layer"), (ATTENTION, "layer"), (ATTENTION, "head"), (ATTENTION, "length")):
        with pytest.raises(ValueError, match=f"{column} 3 is out of bounds"):
            check_rows(table, rows(table, column, 1, 3), bounds_of(run))


@pytest.mark.parametrize(("table", "column", "value"), [(SCORES, "n", 3), (SCORES, "value", 0.5), (WORDS, "word", "a")])
def test_missing_value_is_refused(table: Table, column: str, value: Any):
    """Every row needs a value and the number n that it is based on."""
    with pytest.raises(ValueError, match=f"{column} has no value in 1 rows"):
        check_rows(table, rows(table, column, value, None), BOUNDS)


def test_sparse_table_is_refused(monkeypatch: pytest.MonkeyPatch):
    """A table by step and group may have four cells for each row, but not five."""
    monkeypatch.setattr("embryo_core.results.checks.MAX_CELLS", 8)

    def scores(groups: str, steps: str) -> pa.Table:
        return rows(SCORES, "group", *groups).set_column(1, "step", pa.array(map(int, steps), pa.int64()))

    check_keys(SCORES, scores("abcda", "11223"))
    with pytest.raises(ValueError, match="5 rows would be a table of 25 cells"):
        check_keys(SCORES, scores("abcde", "12345"))


# === Before writing ===


SQUARE = np.full((2, 2), 0.5)


def word(n: int, each: list[float]) -> ListedWordSurprisal:
    """Return a word with n occurrences of these surprisals."""
    return ListedWordSurprisal("dog", n, 1.5, 9.0, np.float16(each).tobytes(), 1.0)


REFUSED = {
    "nothing at all": (Findings(), "no rows"),
    "NaN": (Findings(scores=[Score("m", float("nan"), 3)]), "value nan"),
    "infinity": (Findings(scores=[Score("m", float("-inf"), 3)]), "value -inf"),
    "n = 0": (Findings(scores=[Score("m", 0.0, 0, "noun")]), "n 0"),
    "negative n": (Findings(scores=[Score("m", 0.0, -1)]), "n -1"),
    "a word never met": (Findings(words=[WordCount("m", "NN", "w", 0, 0)]), "n 0"),
    "more hits than words": (Findings(words=[WordCount("m", "NN", "w", 2, 3)]), "correct is more than n"),
    "rank 0": (Findings(cloze=[ClozeAnswer("f", "P1", "s", "o", 0, 0.1, "p", 0.1)]), "rank 0"),
    "NaN probability": (
        Findings(cloze=[ClozeAnswer("f", "P1", "s", "o", 1, float("nan"), "p", 0.1)]),
        "probability nan",
    ),
    "NaN weight": (Findings(attention=[AttentionMap(1, 1, SQUARE * np.nan, 3)]), "weights are not finite"),
    "a weight beyond float16": (Findings(attention=[AttentionMap(1, 1, SQUARE * 1e6, 3)]), "weights are not finite"),
    "no square": (Findings(attention=[AttentionMap(1, 1, np.ones((2, 3)), 3)]), "weights have another length"),
    "no sentences": (Findings(attention=[AttentionMap(1, 1, SQUARE, 0)]), "sentences 0"),
    "a loss that is NaN": (
        Findings(probes=[ProbeCurve("pos", 0, False, 1, float("nan"), 0.5)]),
        "train_loss nan",
    ),
    "F1 above 1": (Findings(probes=[ProbeCurve("pos", 0, True, 1, 0.3, 1.5)]), "dev_f1 1.5"),
    "a score above 1": (Findings(task_scores=[TaskScore("rte", 1, "model", "accuracy", 1.5, 4)]), "value 1.5"),
    "a score on nothing": (Findings(task_scores=[TaskScore("rte", 1, "model", "accuracy", 0.5, 0)]), "n 0"),
    "a fine-tuning's loss that is NaN": (
        Findings(tuning=[TuningPoint("rte", 1, 3, float("nan"), 0.5)]),
        "train_loss nan",
    ),
    "an answer that is NaN": (Findings(answers=[TaskAnswer("stsb", 1, 0, 2.5, float("nan"))]), "answer nan"),
    "a pair without a score": (Findings(pairs=[PairScore("a/b/c", 0, float("nan"), -1.0)]), "good nan"),
    "a word with fewer numbers than occurrences": (
        Findings(surprisals=[word(2, [1.5])]),
        "occurrences have another length",
    ),
    "a surprisal beyond float16": (Findings(surprisals=[word(1, [np.inf])]), "occurrences are not finite"),
    "a span that ends before it begins": (
        Findings(spans=[SpanAnswer("squad", 1, "q", 5, 3, 0.0, 0.0)]),
        "start is more than end",
    ),
    "a row twice": (Findings(scores=[Score("m", 0.5, 3), Score("m", 0.6, 3)]), "two rows"),
}


@pytest.mark.parametrize(("findings", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_findings_are_not_written(run, findings, message):
    """One invalid row refuses the whole write and leaves the earlier results in place."""
    results.write(checkpoint_at(run, 8), "m", Findings(scores=[Score("m", 0.75, 3, "all")]))
    before = tree(run.results)
    with pytest.raises(ResultsError, match=message) as error:
        results.write(checkpoint_at(run, 8), "m", findings)
    assert "nothing was written" in str(error.value) and "'m' at step 8" in str(error.value)
    assert tree(run.results) == before


def test_extreme_valid_values_are_written(run):
    """For example, a correlation may be -1, and a word may be correct never or always."""
    findings = Findings(
        scores=[Score("m", -3.0, 1, "all")],
        words=[WordCount("m", "NN", "a", 4, 0), WordCount("m", "NN", "b", 4, 4)],
        cloze=[ClozeAnswer("f", "P1", "s", "o", 1, 0.0, "the", 1.0)],
        attention=[AttentionMap(1, 1, np.ones((1, 1)), 1)],
        probes=[ProbeCurve("pos", 0, False, i, 0.0, float(i)) for i in (0, 1)],
        task_scores=[TaskScore("stsb", i, "model", "pearson", 2.0 * i - 1, 1) for i in (0, 1)],
        tuning=[TuningPoint("stsb", i, 1, 0.0, 2.0 * i - 1) for i in (0, 1)],
        answers=[TaskAnswer("stsb", 0, 0, -1.0, 5.0)],
        spans=[SpanAnswer("squad", 0, "q", 0, 0, 0.0, 1.0)],
    )
    results.write(checkpoint_at(run, 8), "m", findings)
    assert results.steps_by_metric(run) == {"m": {8}}
