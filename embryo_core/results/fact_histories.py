"""The history of the answers to each fact: at which steps they were right; summarised in facts.parquet."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.json import Decoder, encode

from embryo_core import curves
from embryo_core.results.memo import memoized
from embryo_core.results.rows import read_table, read_values
from embryo_core.results.summaries import PendingRows, Summary, read_summary
from embryo_core.results.tables import CLOZE, Table
from embryo_core.types import RightAnswers, Run

FACT_HISTORIES = Table(
    "facts",
    "relation fact subject object history first right",  # right: one bit per step
    key_names="relation fact",
    optional=("first",),
    is_summary=True,
)
SCHEMA = FACT_HISTORIES.schema
STEPS_KEY = b"steps"  # metadata key: the steps as a JSON list
COLUMNS = ("relation", "fact", "step", "rank")
TEXT_COLUMNS = ["relation", "fact", "subject", "object"]
STEPS_DECODER = Decoder(list[int])


@memoized
def read_histories(run: Run) -> pd.DataFrame:
    """Return the history of each fact's answers: relation, fact, subject, object, history, first; sorted.

    `history` is a class of `curves.classify_histories`; `first` is the first step at which the answer was right, or NA.
    """
    return read_summary(run, FACTS_SUMMARY).drop_columns("right").to_pandas().astype({"first": "Int64"})


def read_right_answers(run: Run) -> RightAnswers:
    """Return the steps at which each fact was answered right. Raises ResultsError."""
    return RightAnswers(*_right(read_summary(run, FACTS_SUMMARY)))


def _right(rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps [S] of a summary, and whether each fact was answered right at each, bool [F, S]."""
    steps = np.array(STEPS_DECODER.decode(rows.schema.metadata[STEPS_KEY]), np.int64)
    packed = np.frombuffer(b"".join(rows["right"].to_pylist()), np.uint8).reshape(rows.num_rows, -(-len(steps) // 8))
    return steps, np.unpackbits(packed, axis=1, count=len(steps)).astype(bool)


def _check(rows: pa.Table, done: dict[str, list[int]]) -> None:
    """Raise ValueError unless a summary has the steps of its table, and its columns agree."""
    steps = STEPS_DECODER.decode(rows.schema.metadata[STEPS_KEY])
    lengths = set(pc.unique(pc.binary_length(rows["right"])).to_pylist())
    if steps != sorted(set().union(*done.values())):
        raise ValueError("its steps are not those of the table")
    if not lengths <= {-(-len(steps) // 8)}:
        raise ValueError("its answers have another length than its steps")
    history, first = _classify_and_date(*_right(rows))
    if not (rows["history"].combine_chunks().equals(history) and rows["first"].combine_chunks().equals(first)):
        raise ValueError("it contradicts itself")


def _classify_and_date(steps: np.ndarray, right: np.ndarray) -> tuple[pa.Array, pa.Array]:
    """Return the history of each fact, and the first step at which it was answered right, or null."""
    first = pa.array(steps[right.argmax(axis=1)] if len(steps) else steps, pa.int64(), mask=~right.any(axis=1))
    return pa.array(curves.classify_histories(right), pa.string()), first


def _compute(run: Run) -> pa.Table:
    """Compute the summary relation by relation, since all answers together may not fit into memory."""
    tables = [_relation_ranks(run, relation) for relation in read_values(run, CLOZE, "relation")]
    steps = np.unique(np.concatenate([np.zeros(0, np.int64), *(ranks.columns for _, ranks in tables)]))
    right = [np.zeros((0, len(steps)), bool), *((ranks.reindex(columns=steps) == 1).to_numpy() for _, ranks in tables)]
    words = pa.concat_tables([SCHEMA.empty_table().select(TEXT_COLUMNS), *(words for words, _ in tables)])
    return _summary(words, steps, np.concatenate(right))


def _add(summary: pa.Table, pending: PendingRows) -> pa.Table | None:
    """Return the summary with the answers at pending steps; None unless each of these asked all facts."""
    steps, right = _right(summary)
    facts = summary.select(["relation", "fact"]).combine_chunks()
    for (_, step), answers in pending.items():
        if not answers.select(["relation", "fact"]).combine_chunks().equals(facts):
            return None
        place = int(np.searchsorted(steps, step))
        if place == len(steps) or steps[place] != step:
            steps, right = np.insert(steps, place, step), np.insert(right, place, False, axis=1)
        right[:, place] = answers["rank"].to_numpy() == 1
    return _summary(summary.select(TEXT_COLUMNS), steps, right)


def _summary(words: pa.Table, steps: np.ndarray, right: np.ndarray) -> pa.Table:
    """Return the summary of facts from whether each was answered right at the steps [S], bool [F, S]."""
    history, first = _classify_and_date(steps, right)
    packed = pa.array([row.tobytes() for row in np.packbits(right, axis=1)], pa.binary())
    columns = {name: words[name] for name in TEXT_COLUMNS} | {"history": history, "first": first, "right": packed}
    return pa.table(columns, SCHEMA.with_metadata({STEPS_KEY: encode(steps.tolist())}))


def _relation_ranks(run: Run, relation: str) -> tuple[pa.Table, pd.DataFrame]:
    """Return the words of a relation's facts, and the rank of each fact at each step."""
    columns = [*TEXT_COLUMNS, "step", "rank"]
    cloze = read_table(run, CLOZE, pc.field("relation") == relation, columns=columns).to_pandas()
    ranks = cloze.pivot(index=["relation", "fact"], columns="step", values="rank")
    words = cloze.drop_duplicates(["relation", "fact"]).set_index(["relation", "fact"])[["subject", "object"]]
    words = words.reindex(ranks.index).reset_index()
    return pa.table({name: pa.array(words[name], pa.string()) for name in TEXT_COLUMNS}), ranks


FACTS_SUMMARY = Summary(FACT_HISTORIES, CLOZE, _compute, COLUMNS, _add, _check)
