"""How the answers to every fact went: a summary of the cloze table beside it, so that no page reads it as a whole.

    facts.parquet    a row for each fact; its metadata name the checksum of the cloze.parquet that it was made from

It is made when tables are compacted. Where it is missing, or not that of the rows at hand, it is computed anew.
"""

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embryo_core import curves
from embryo_core.errors import ResultsError
from embryo_core.results.files import is_stored, remove, replacing_table, stored_checksum, verified
from embryo_core.results.parts import list_parts
from embryo_core.results.read import read_table, read_values
from embryo_core.results.tables import CLOZE
from embryo_core.types import Run

SCHEMA = pa.schema(
    {name: pa.string() for name in ("relation", "fact", "subject", "object", "history")} | {"first": pa.int64()}
)
FILE = "facts.parquet"
SOURCE = b"made_from"


def read_histories(run: Run) -> pd.DataFrame:
    """How each fact's answers went over the steps: relation, fact, subject, object, history, first; sorted.

    `history` is that of `curves.classify_history`; `first` is the first step at which the answer was right (none: NA).
    Raises ResultsError.
    """
    stored = None if _has_answers_in_parts(run) else _read_stored(run)
    found = _compute(run) if stored is None else stored.to_pandas()
    return found.astype({"first": "Int64"})


def read_right_answers(run: Run) -> pd.DataFrame:
    """Facts and the steps at which their answers were right: relation, fact, step; sorted. Raises ResultsError."""
    columns = ["relation", "fact", "step", "rank"]
    return read_table(run, CLOZE, pc.field("rank") == 1, columns=columns).select(columns[:3]).to_pandas()


def write_histories(run: Run) -> None:
    """Make the summary that of the compacted table; without one there is none. For a writer that holds the lock."""
    path, source = run.results / FILE, _source(run)
    if source is None:
        remove(path)
    elif not has_histories(run):
        rows = pa.Table.from_pandas(_compute(run), SCHEMA.with_metadata({SOURCE: source}), preserve_index=False)
        with replacing_table(path) as temporary:
            pq.write_table(rows, temporary, compression="zstd", write_page_checksum=True)


def has_histories(run: Run) -> bool:
    """Whether the summary is that of the compacted table, or there are no answers to sum up."""
    return _source(run) is None or _read_stored(run) is not None


def _source(run: Run) -> str | None:
    """The checksum of the compacted answers."""
    return stored_checksum(run.results / f"{CLOZE.name}.parquet", run.results)


def _read_stored(run: Run) -> pa.Table | None:
    """The stored summary; None where there is none of the compacted table, or it is damaged."""
    path = run.results / FILE
    if not is_stored(path):
        return None
    try:
        with verified(run, path) as file:
            return None if file is None else _checked(run, pq.read_table(file, page_checksum_verification=True))
    except (pa.ArrowException, OSError, ValueError, LookupError, ResultsError):
        return None


def _checked(run: Run, rows: pa.Table) -> pa.Table:
    if (rows.schema.metadata or {}).get(SOURCE) != (_source(run) or "").encode():
        raise ValueError("it is the summary of another table")
    if not rows.schema.equals(SCHEMA) or not set(pc.unique(rows["history"]).to_pylist()) <= set(curves.HISTORIES):
        raise ValueError("it is no summary of facts")
    return rows


def _has_answers_in_parts(run: Run) -> bool:
    return any(is_stored(part / f"{CLOZE.name}.parquet") for part in list_parts(run).values())


def _compute(run: Run) -> pd.DataFrame:
    """From the answers themselves, one relation after the other, as all together may not fit into memory."""
    found = [_of_relation(run, relation) for relation in read_values(run, CLOZE, "relation")]
    return pd.concat(found, ignore_index=True) if found else SCHEMA.empty_table().to_pandas()


def _of_relation(run: Run, relation: str) -> pd.DataFrame:
    columns = ["relation", "fact", "step", "rank", "subject", "object"]
    return sum_up(read_table(run, CLOZE, pc.field("relation") == relation, columns=columns).to_pandas())


def sum_up(cloze: pd.DataFrame) -> pd.DataFrame:
    """The histories, as `read_histories` returns them, of answers with a row for each fact and step, in any order."""
    ranks = cloze.pivot(index=["relation", "fact"], columns="step", values="rank")
    correct = (ranks == 1).to_numpy()
    first = pd.array(ranks.columns.to_numpy()[correct.argmax(axis=1)], dtype="Int64")
    first[~correct.any(axis=1)] = pd.NA
    found = pd.DataFrame({"history": curves.classify_histories(correct), "first": first}, index=ranks.index)
    words = cloze.drop_duplicates(["relation", "fact"]).set_index(["relation", "fact"])[["subject", "object"]]
    return words.join(found, how="right").reset_index()
