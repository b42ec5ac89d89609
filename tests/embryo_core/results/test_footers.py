"""Footers are kept as long as their file is, and name every row group that has a step."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.results import footers
from embryo_core.results.files import seal, verified
from embryo_core.results.tables import ATTENTION
from embryo_core.types import Run
from tests.conftest import at
from tests.embryo_core.results.conftest import STEPS, find


def write(run: Run, *steps: int) -> None:
    """Averaged maps of all heads at these steps, compacted."""
    for step in steps:
        results.write(at(run, step), "attention", find("attention", step))
    results.compact(run)


def footer(run: Run) -> pq.FileMetaData:
    """That of the attention maps."""
    with verified(run, run.results / f"{ATTENTION.name}.parquet") as file:
        return footers.footer_of(file)


def test_a_footer_is_read_again_when_its_file_is_another(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Once for one file, however often it is opened, and once more after a writer has replaced it."""
    write(run, 0, 8)
    path = run.results / f"{ATTENTION.name}.parquet"
    rows, read, check_size = pq.read_table(path), [], footers.check_size
    monkeypatch.setattr(footers, "check_size", lambda file: read.append(1) or check_size(file))
    footers.footer_of.cache_clear()
    assert footer(run).num_rows == footer(run).num_rows == len(rows) and len(read) == 1
    pq.write_table(rows.slice(1), path)
    seal(path)
    assert footer(run).num_rows == len(rows) - 1 and len(read) == 2


def test_steps_that_no_run_has_are_refused(run: Run):
    """A stranger's file whose steps are larger than whole numbers here is one sentence."""
    write(run, *STEPS)
    path = run.results / f"{ATTENTION.name}.parquet"
    rows = pq.read_table(path).replace_schema_metadata({"done": pq.read_metadata(path).metadata[b"done"]})
    column = pa.field("step", pa.uint64()), pa.array([2**64 - 1] * len(rows), pa.uint64())
    pq.write_table(rows.set_column(rows.column_names.index("step"), *column), path)
    seal(path)
    with pytest.raises(ResultsError, match=r"attention\.parquet cannot be read"):
        results.read_attention_step(run, STEPS[0])


@pytest.mark.parametrize("longest", [1, 2, 4, 100])
def test_the_groups_of_a_step_are_those_that_have_it(run: Run, longest: int):
    """However many rows stand in a group, each group with a row of the step is named; of single rows no other is."""
    write(run, *STEPS)
    path = run.results / f"{ATTENTION.name}.parquet"
    expected = results.read_attention_steps(run)[1]
    rows = pq.read_table(path).replace_schema_metadata({"done": pq.read_metadata(path).metadata[b"done"]})
    pq.write_table(rows, path, row_group_size=longest)
    seal(path)
    stored = pq.ParquetFile(path)
    groups = [set(stored.read_row_group(i, ["step"])["step"].to_pylist()) for i in range(stored.num_row_groups)]
    for step, maps in zip(STEPS, expected, strict=True):
        with verified(run, path) as file:
            named = footers.groups_with_steps(file, [step])
        assert {i for i, held in enumerate(groups) if step in held} <= set(named)
        assert longest > 1 or all(groups[i] == {step} for i in named)
        np.testing.assert_array_equal(results.read_attention_step(run, step)[0], maps)
    some = [STEPS[0], STEPS[-1]]
    with verified(run, path) as file:
        named = footers.groups_with_steps(file, some)
    assert {i for i, held in enumerate(groups) if held & {*some}} <= set(named)
    assert longest > 1 or all(groups[i] <= {*some} for i in named)
    np.testing.assert_array_equal(results.read_attention_steps(run, some)[1], expected[[0, -1]])


@pytest.mark.parametrize("replaced", [True, False])
def test_a_read_that_fails_while_the_file_is_replaced_is_none_of_the_new_file(run: Run, replaced: bool):
    """It is read once more; where nothing was replaced, the error is that of the file."""
    write(run, *STEPS)
    path = run.results / f"{ATTENTION.name}.parquet"
    with pytest.raises(FileNotFoundError if replaced else ValueError), verified(run, path):
        if replaced:
            other = path.with_suffix(".other")
            other.write_bytes(path.read_bytes() + b" ")
            other.replace(path)
        raise ValueError("cut short")
