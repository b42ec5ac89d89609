"""Tests of the Attention page: with results, and with a broken file."""

import io
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from app import figures, maps
from embryo_core import results, runs
from tests.app.conftest import captions_of


def test_page_shows_one_head_and_all_heads(open_view, tiny_results):
    """The pickers offer the run's layers and heads, and the captions name the number of sentences and steps."""
    test = open_view(tiny_results)
    assert not test.exception and not test.error
    assert [box.options for box in test.selectbox if box.label in ("Layer", "Head")] == [["1", "2"], ["1", "2"]]
    sentences = results.read_attention(tiny_results, 1, 1).sentences
    assert any(f"{sentences:,} sentences" in caption for caption in captions_of(test))
    assert any("the weights of this head over all 3 steps" in caption for caption in captions_of(test))


def test_rows_can_be_normalised_to_sum_one(open_view, tiny_results):
    """Averaged rows do not sum to 1, and the caption says why; the switch divides each row by its sum."""
    test = open_view(tiny_results)
    assert any("So rows do not sum to 1" in caption for caption in captions_of(test))
    next(switch for switch in test.toggle if switch.label == "Rows sum to 1").set_value(True).run()
    assert not test.exception and test.query_params["rows"] in ("on", ["on"])
    assert any("each row divided by its sum" in caption for caption in captions_of(test))
    shown = [maps.head_history(tiny_results, 1, 1, (0, 8, 16), on).weights.sum(axis=-1) for on in (False, True)]
    assert not np.allclose(shown[0], 1, atol=1e-3) and np.allclose(shown[1], 1, atol=1e-3)
    everything = maps.at_step(tiny_results, 16, normalised=True)
    assert np.allclose(everything[0, 0].sum(axis=-1), 1, atol=1e-3)


@pytest.mark.usefixtures("all_opened")
def test_files_name_run_data_and_normalisation(open_view, tiny_results, monkeypatch: pytest.MonkeyPatch):
    """Every row of the four CSV files has them: one head, all heads, over the steps, and layer by layer."""
    files = []
    monkeypatch.setattr(figures, "_download", lambda file, name: files.append(file))
    for section in ("maps", "layers"):
        open_view(tiny_results, section=section, rows="on")
    tables = [pd.read_csv(io.StringIO(file.content())) for file in files if file.name.endswith(".csv")]
    assert len(tables) == 4
    for table in tables:
        assert set(table["run"]) == {tiny_results.name}
        assert table["data"].str.contains("sentences of .*, each row divided by its sum").all()


def test_layer_and_head_are_kept_in_url(open_view, tiny_results):
    """A link opens the head that it names, and a choice of another head is written to the URL."""
    test = open_view(tiny_results, layer="2", head="2")
    assert "Layer 2, head 2" in [heading.value for heading in test.header]
    next(box for box in test.selectbox if box.label == "Head").select("1").run()
    assert "Layer 2, head 1" in [heading.value for heading in test.header]
    assert test.query_params["head"] in ("1", ["1"])


def test_broken_file_is_named_in_message(open_view, own_run):
    """The message about a file that is not Parquet includes the command of evaluation; there is no traceback."""
    own_run.results.mkdir(parents=True)
    (own_run.results / "attention.parquet").write_bytes(b"not parquet")
    test = open_view(own_run)
    assert not test.exception
    assert "attention.parquet" in test.error[0].value.replace("\\", "")
    assert "python -m embryo_core evaluate" in test.error[0].value.replace("\\", "")


@pytest.mark.parametrize("damaged", ["words", "scores", "cloze"])
@pytest.mark.parametrize("section", ["maps", "layers"])
def test_damaged_tables_of_other_metrics_do_not_hide_maps(
    open_view, tiny_results, tmp_path, damaged: str, section: str
):
    """Maps and their captions need no table but their own."""
    run = runs.read_run(Path(shutil.copytree(tiny_results.path, tmp_path / "runs" / "tiny")))
    shutil.copytree(tiny_results.results, tmp_path / "results" / "tiny")
    results.compact(run)
    (run.results / f"{damaged}.parquet").write_bytes(b"PAR1")
    test = open_view(run, section=section)
    assert not test.exception and not [error.value for error in test.error]
    assert any("sentences" in caption for caption in captions_of(test))


def test_long_series_reads_log_spaced_maps_and_chosen_step(open_view, tiny_results, monkeypatch):
    """The captions name the number of steps with maps; the maps equal those of the whole series at these steps."""
    monkeypatch.setattr(maps, "MAX_MAPS", 2)
    maps._maps_at_first.clear()
    steps = maps.shown_steps(tiny_results, max)
    assert steps == (0, 16) and maps.shown_steps(tiny_results, lambda known: 8) == (0, 8, 16)
    assert any("Of 3 steps, 2 have their maps here" in caption for caption in captions_of(open_view(tiny_results)))
    assert not any("have their maps here" in caption for caption in captions_of(open_view(tiny_results, step="8")))
    _, weights, _ = results.read_attention_steps(tiny_results)
    assert np.array_equal(maps._weights(tiny_results, steps, False), weights[[0, 2]])
    assert np.array_equal(maps._weights(tiny_results, (0, 8, 16), False), weights)
    history = maps.head_history(tiny_results, 2, 1, steps)
    assert np.array_equal(history.weights, weights[[0, 2], 1, 0])
    maps._maps_at_first.clear()


def test_layers_section_shows_one_head_in_every_layer(open_view, tiny_results):
    """The captions give n and a remark on layers that share weights."""
    test = open_view(tiny_results, section="layers", head="2", step="8")
    assert not test.exception and not test.error
    assert "Head 2 of tiny in every layer" in [heading.value for heading in test.header]
    sentences = results.read_attention(tiny_results, 1, 1).sentences
    assert any(f"n = {sentences:,} sentences" in caption for caption in captions_of(test))
    assert any("share their weights" in caption for caption in captions_of(test))
