"""Tests of exporting scores to the formats of other tools, read back by those tools."""

from pathlib import Path

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.cli import main
from embryo_core.errors import ResultsError
from embryo_core.share.trackers import export, scalars
from embryo_core.types import Run


def test_tensorboard_reads_every_curve(tiny_results: Run, tmp_path: Path):
    """A tag names the metric, the layer and the group; the values are those of the scores."""
    loader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_file_loader", reason="tensorboard is absent"
    )
    folder = export(tiny_results, "tensorboard", tmp_path / "events")
    (file,) = folder.iterdir()
    read: dict[str, list[tuple[int, float]]] = {}
    for event in loader.LegacyEventFileLoader(str(file)).Load():
        for value in event.summary.value:
            read.setdefault(value.tag, []).append((event.step, value.simple_value))
    scores = results.read_scores(tiny_results)
    nouns = scores[(scores["metric"] == "mask_prediction") & (scores["group"] == "noun")].sort_values("step")
    assert read["mask_prediction/noun"] == [
        (step, pytest.approx(value)) for step, value in nouns[["step", "value"]].itertuples(index=False)
    ]
    assert sum(map(len, read.values())) == len(scores) and any("/layer1/" in tag for tag in read)


@pytest.mark.parametrize(("form", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_tables_have_the_rows_of_the_scores(tiny_results: Run, tmp_path: Path, form: str, read):
    """Each row has its run and n."""
    rows, scores = read(export(tiny_results, form, tmp_path / form)), results.read_scores(tiny_results)
    assert rows[["run", "metric", "step", "group", "n"]].values.tolist() == (
        scores[["run", "metric", "step", "group", "n"]].values.tolist()
    )
    assert rows["value"].to_numpy() == pytest.approx(scores["value"].to_numpy())


def test_tags_replace_blanks_and_dollar_signs():
    """TensorBoard refuses them."""
    rows = pd.DataFrame({"metric": "a", "layer": pd.array([None]), "group": ["PRP$ x"], "step": [1], "value": [0.5]})
    assert [tag for tag, _ in scalars(rows)] == ["a/PRP__x"]


def test_full_folder_and_run_without_scores_are_refused(
    tiny_results: Run, tiny_run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Nothing is written in either case."""
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ResultsError, match="already holds"):
        export(tiny_results, "csv", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert main(["export", str(tiny_run.path), "--to", "csv", str(tmp_path / "new")]) == 2
    assert "no scores" in capsys.readouterr().err and not (tmp_path / "new").exists()
