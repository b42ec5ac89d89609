"""How the answers to every fact went: which were right, and the history of each fact; summed up in facts.parquet."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.json import Decoder, encode

from embryo_core import curves
from embryo_core.results import summaries
from embryo_core.results.read import read_table, read_values
from embryo_core.results.summaries import Summary
from embryo_core.results.tables import CLOZE
from embryo_core.types import RightAnswers, Run

TEXTS = {name: pa.string() for name in ("relation", "fact", "subject", "object", "history")}
SCHEMA = pa.schema(TEXTS | {"first": pa.int64(), "right": pa.binary()})  # right: a bit for each step
STEPS = b"steps"  # in the metadata
DECODER = Decoder(list[int])


def read_histories(run: Run) -> pd.DataFrame:
    """How each fact's answers went over the steps: relation, fact, subject, object, history, first; sorted.

    `history` is that of `curves.classify_history`; `first` is the first step at which the answer was right (none: NA).
    Raises ResultsError.
    """
    return summaries.read(run, FACTS).drop_columns("right").to_pandas().astype({"first": "Int64"})


def read_right_answers(run: Run) -> RightAnswers:
    """Which facts were answered right at which steps. Raises ResultsError."""
    rows = summaries.read(run, FACTS)
    steps = np.array(DECODER.decode(rows.schema.metadata[STEPS]), np.int64)
    packed = np.frombuffer(b"".join(rows["right"].to_pylist()), np.uint8).reshape(rows.num_rows, -(-len(steps) // 8))
    return RightAnswers(steps, np.unpackbits(packed, axis=1, count=len(steps)).astype(bool))


def _check(rows: pa.Table) -> None:
    steps = DECODER.decode(rows.schema.metadata[STEPS])
    lengths = set(pc.unique(pc.binary_length(rows["right"])).to_pylist())
    if steps != sorted(set(steps)) or not lengths <= {-(-len(steps) // 8)}:
        raise ValueError("it does not say which answers were right")
    if not set(pc.unique(rows["history"]).to_pylist()) <= set(curves.HISTORIES):
        raise ValueError("it is no summary of facts")


def _compute(run: Run) -> pa.Table:
    """From the answers themselves, one relation after the other, as all together may not fit into memory."""
    found = [_of_relation(run, relation) for relation in read_values(run, CLOZE, "relation")]
    steps = np.unique(np.concatenate([np.zeros(0, np.int64), *(ranks.columns for _, ranks in found)]))
    frames = []
    for facts, ranks in found:
        correct = np.zeros((len(facts), len(steps)), bool)
        correct[:, np.searchsorted(steps, ranks.columns)] = ranks == 1
        frames.append(facts.assign(right=[row.tobytes() for row in np.packbits(correct, axis=1)]))
    schema = SCHEMA.with_metadata({STEPS: encode(steps.tolist())})
    return pa.Table.from_pandas(pd.concat(frames), schema, preserve_index=False) if frames else schema.empty_table()


def _of_relation(run: Run, relation: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The histories of a relation's facts, and the rank of each at each step."""
    columns = ["relation", "fact", "step", "rank", "subject", "object"]
    cloze = read_table(run, CLOZE, pc.field("relation") == relation, columns=columns).to_pandas()
    return sum_up(cloze), _ranks(cloze)


def sum_up(cloze: pd.DataFrame) -> pd.DataFrame:
    """The histories, as `read_histories` returns them, of answers with a row for each fact and step, in any order."""
    ranks = _ranks(cloze)
    correct = (ranks == 1).to_numpy()
    first = pd.array(ranks.columns.to_numpy()[correct.argmax(axis=1)], dtype="Int64")
    first[~correct.any(axis=1)] = pd.NA
    found = pd.DataFrame({"history": curves.classify_histories(correct), "first": first}, index=ranks.index)
    words = cloze.drop_duplicates(["relation", "fact"]).set_index(["relation", "fact"])[["subject", "object"]]
    return words.join(found, how="right").reset_index()


def _ranks(cloze: pd.DataFrame) -> pd.DataFrame:
    return cloze.pivot(index=["relation", "fact"], columns="step", values="rank")


FACTS = Summary("facts.parquet", CLOZE, SCHEMA, _compute, _check)
