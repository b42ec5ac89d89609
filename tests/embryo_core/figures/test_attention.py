"""Tests of the attention figures, which hold the stored weights."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from embryo_core import results
from embryo_core.curves.scores import POSITIONS, position_weights
from embryo_core.figures import attention as charts
from embryo_core.figures.axis import AxisChoice
from embryo_core.share import read_averaged
from embryo_core.types import Run

STEPS = np.array([0, 8, 16])


@pytest.fixture
def maps() -> np.ndarray:
    """Return weights [S, layers, heads, L, L] whose rows sum to one."""
    weights = np.random.default_rng(0).random((3, 2, 4, 6, 6)).astype(np.float32) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


def position_table(maps: np.ndarray) -> pd.DataFrame:
    """Return what is stored of the maps [S, L, L] of one head."""
    return pd.DataFrame({"step": STEPS} | dict(zip(POSITIONS, position_weights(maps).T, strict=True)))


def test_position_rows_hold_measured_weights(maps):
    """Each position has one row per step, under the name of its curve."""
    wide = position_table(maps[:, 1, 2])
    frame = charts.position_rows(wide).set_index(["position", "step"])["weight"]
    assert len(frame) == wide[[*POSITIONS]].size and charts.POSITIONS.keys() == {*POSITIONS}
    for position, (name, _) in charts.POSITIONS.items():
        assert frame[name].tolist() == wide[position].tolist()


def test_lines_hold_weights_at_recorded_steps(tiny_results):
    """The title and the table's `data` column say if each row of a map was divided by its sum."""
    figure = charts.position_weights([tiny_results], AxisChoice("linear"), layer=2, head=1)
    lines = {line.name: line for line in figure.plot.data}
    assert {*lines} == {name for name, _ in charts.POSITIONS.values()}
    for name, line in lines.items():
        rows = figure.table[figure.table["position"] == name]
        assert list(line.x) == list(rows["step"]) == [0, 8, 16] and list(line.y) == list(rows["weight"])
    divided = charts.position_weights([tiny_results], AxisChoice("linear"), layer=2, head=1, normalised=True)
    assert "divided by its sum" in divided.title and divided.table["data"].str.contains("divided by its sum").all()


def test_caption_of_one_head_counts_sentences_and_steps(tiny_results):
    """The sentences are those that reach the first and the last position, the steps those with maps."""
    caption = charts.describe_head(tiny_results, read_averaged(tiny_results, 2, 1), [40, 3], False, 5)
    assert "40 reach position 0, 3 the last" in caption.details and "Of 5 steps, 3" in caption.details


def test_csv_has_stored_weights_with_run_and_data(tiny_results):
    """The rows of one head are those of the head among all heads."""
    weights, _ = results.read_attention_step(tiny_results, 8)
    table = charts.weights_table(weights, 8)
    of_head = table[(table["layer"] == 2) & (table["head"] == 1)].reset_index(drop=True)
    pd.testing.assert_frame_equal(charts.map_table(read_averaged(tiny_results, 2, 1), 8), of_head)
    first, *rows = charts.maps_csv(table, "tiny", "a treebank").splitlines()
    assert first == "step,layer,head,from,to,weight,run,data" and len(rows) == weights.size
    assert all(row.endswith(",tiny,a treebank") for row in rows)
    assert charts.maps_csv(table, "tiny", "").startswith("step,layer,head,from,to,weight,run\n")


def test_weight_sharing_is_described(tiny_run: Run):
    """ALBERT shares weights over all layers or within groups; BERT shares none, so nothing is said."""
    assert "All layers share" in charts.describe_sharing(replace(tiny_run, config={}))
    assert "2 groups share" in charts.describe_sharing(replace(tiny_run, config={"num_hidden_groups": 2}))
    assert charts.describe_sharing(replace(tiny_run, family="bert")) == ""


def test_weights_table_has_one_row_per_weight(maps):
    """Layers and heads are counted from 1, positions from 0, as on the page."""
    table = charts.weights_table(maps[1], 8)
    assert len(table) == maps[1].size
    for row in table.sample(20, random_state=0).to_dict("records"):
        assert row["weight"] == maps[1][row["layer"] - 1, row["head"] - 1, row["from"], row["to"]]
        assert row["step"] == 8
