"""Tests of the static site: its data are the dashboard's figures, and its folder is replaced whole or not at all."""

import base64
import gzip
import json
import re
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from embryo_core import results
from embryo_core.cli import main
from embryo_core.curves.step_scales import SCALES
from embryo_core.errors import SiteError
from embryo_core.figures import grammar, knowledge, overview
from embryo_core.figures.smoothing import WINDOWS
from embryo_core.site import site, write_site
from embryo_core.site.pages import PAGES
from embryo_core.site.parts import Panel
from embryo_core.types import Run
from tests.conftest import copy_run


def read(path: Path) -> Any:
    """Return the value of a data file as a page reads it."""
    packed = re.fullmatch(r'embryo\.add\(".*", "(.*)"\);\n', path.read_text()).group(1)
    content = json.loads(gzip.decompress(base64.b64decode(packed)))

    def filled(part: Any) -> Any:
        if isinstance(part, dict) and "$" in part:
            return filled(content["parts"][part["$"]])
        if isinstance(part, dict):
            return {name: filled(each) for name, each in part.items()}
        return [filled(each) for each in part] if isinstance(part, list) else part

    return filled(content["value"])


@pytest.fixture(scope="module")
def short_site(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a site of one page for tests to copy."""
    folder = tmp_path_factory.mktemp("short") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "PAGES", {"query": PAGES["query"]})
        write_site([tiny_results], folder, "A title that is no text: \udcff")
    return folder


@pytest.fixture
def own_site(short_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the site of one page for the test to change."""
    monkeypatch.setattr(site, "PAGES", {"query": PAGES["query"]})
    return Path(shutil.copytree(short_site, tmp_path / "site"))


def data(folder: Path) -> Path:
    """Return the data folder of the only view."""
    (data_folder,) = (folder / "data").glob("*/")
    return data_folder


def test_every_page_has_its_file_and_data(tiny_site: Path):
    """The data of Tokens and Probing have their panels, and the site has its title."""
    names = {path.stem for path in tiny_site.glob("*.html")}
    assert names == {*PAGES, "index"} - {"overview"}
    shown = {name: [part.get("name") for part in read(data(tiny_site) / f"{name}.js")["parts"]] for name in PAGES}
    assert {"accuracy", "acquisition"} <= {*shown["tokens"]} and "layers" in shown["probing"]
    assert read(tiny_site / "data" / "site.js")["title"] == "A site & more"


def test_figure_csv_has_the_stored_scores(tiny_site: Path, tiny_results: Run):
    """The values equal those that the evaluation wrote, and the figure has a plot for each scale of the axis."""
    panel = next(part for part in read(data(tiny_site) / "tokens.js")["parts"] if part["name"] == "accuracy")
    choice = next(choice for choice in panel["choices"] if choice["label"] == "Mask prediction, parts of speech")
    figure = read(tiny_site / "data" / f"{choice['file']}.js")
    table = pd.read_csv(StringIO(figure["csv"])).set_index(["group", "step"])["accuracy"]
    scores = results.read_scores(tiny_results, "mask_prediction").set_index(["group", "step"])["value"]
    assert len(table) and table.to_dict() == pytest.approx(scores[table.index].to_dict())
    assert (
        set(figure["plots"]) == {"log", "linear"}
        and figure["plots"]["linear"]["1"]["layout"]["xaxis"]["type"] == "linear"
    )


def test_runs_keep_their_order(tiny_results: Run, tmp_path: Path, monkeypatch):
    """JavaScript would put names that are whole numbers first."""
    monkeypatch.setattr(site, "PAGES", {"query": PAGES["query"]})
    made = []
    for name in ("tiny", "7", "10", "2"):
        made.append(replace(copy_run(tiny_results, tmp_path / name), name=name))
        shutil.copytree(tiny_results.results, made[-1].results)
    write_site(made, tmp_path / "site")
    assert read(tmp_path / "site" / "data" / "site.js")["names"] == ["tiny", "7", "10", "2"]


def test_pages_load_nothing_from_other_hosts(tiny_site: Path):
    for path in tiny_site.glob("*.html"):
        assert not re.search(r"""(src|href)=["'](https?:)?//""", path.read_text())


def test_only_changed_runs_are_redrawn(tiny_results: Run, tmp_path: Path, monkeypatch):
    """The view of an unchanged run is reused, and the folder is complete each time."""
    monkeypatch.setattr(site, "PAGES", {"query": PAGES["query"]})
    run = copy_run(tiny_results, tmp_path / "copy")
    shutil.copytree(tiny_results.results, run.results)
    folder = tmp_path / "ein Ort – 場所"
    assert len(write_site([run], folder)) == 1 and write_site([run], folder) == []
    (run.path / "log.jsonl").write_text("")
    assert len(write_site([run], folder)) == 1
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_linked_file_among_results_is_not_read(tiny_results: Run, tmp_path: Path, monkeypatch):
    """It may be larger than any memory, and no page shows it."""
    monkeypatch.setattr(site, "PAGES", {"query": PAGES["query"]})
    run = copy_run(tiny_results, tmp_path / "copy")
    shutil.copytree(tiny_results.results, run.results)
    outside = tmp_path / "secret"
    outside.write_text("one")
    (run.results / "linked.parquet").symlink_to(outside)
    assert len(write_site([run], tmp_path / "site")) == 1
    outside.write_text("another")
    assert write_site([run], tmp_path / "site") == []


def test_foreign_folder_and_run_without_results_are_refused(
    own_run: Run, tiny_results: Run, tmp_path: Path, monkeypatch
):
    """The error names the folder or run, and existing files stay; a fault of the program keeps its own exception."""
    kept = tmp_path / "mine" / "thesis.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(SiteError, match="mine"):
        write_site([tiny_results], kept.parent)
    assert kept.read_text() == "mine"
    with pytest.raises(SiteError, match=own_run.name):
        write_site([own_run], tmp_path / "site")
    assert not (tmp_path / "site").exists()
    assert main(["site", "-o", str(tmp_path / "site")]) == 2
    with pytest.raises(SiteError, match="root"):
        write_site([tiny_results], Path("/"))
    monkeypatch.setattr(site, "write_live", lambda *_: int("a fault of the program"))
    with pytest.raises(ValueError, match="a fault"):
        write_site([tiny_results], tmp_path / "site", live=1)


@pytest.mark.parametrize("name", [".git/config", "CNAME", "data/mine/thesis.txt", "assets/linked.js"])
def test_site_with_foreign_files_is_not_replaced(tiny_results: Run, own_site: Path, name: str):
    """Replacing it would delete the user's files."""
    other = own_site / name
    other.parent.mkdir(exist_ok=True)
    other.symlink_to(own_site / "query.html") if "linked" in name else other.write_text("mine")
    with pytest.raises(SiteError, match=other.name):
        write_site([tiny_results], own_site)
    assert other.exists() and (own_site / "query.html").exists()


def test_invalid_manifest_redraws_the_site(tiny_results: Run, own_site: Path):
    (own_site / site.MANIFEST).write_text("[" * 100_000)
    assert len(write_site([tiny_results], own_site)) == 1
    assert write_site([tiny_results], own_site) == []


def test_concurrent_writer_is_refused(tiny_results: Run, tmp_path: Path, monkeypatch):
    """A second process may write the folder once the first has finished."""
    monkeypatch.setattr(site, "PAGES", {"query": PAGES["query"]})
    folder, refused = tmp_path / "site", []

    def frame(*args: Any) -> None:
        with pytest.raises(SiteError, match="another process") as error:
            write_site([tiny_results], folder)
        refused.append(error)
        written(*args)

    written = site._write_frame
    monkeypatch.setattr(site, "_write_frame", frame)
    write_site([tiny_results], folder)
    monkeypatch.setattr(site, "_write_frame", written)
    write_site([tiny_results], folder)
    assert refused and [path.name for path in tmp_path.iterdir()] == ["site"]


def test_long_tables_are_stored_completely(tiny_site: Path, tiny_results: Run):
    """Words and facts of the last step have their stored numbers."""
    page = read(data(tiny_site) / "tokens.js")
    about = next(part for part in page["parts"] if part.get("columns"))
    rows = pd.DataFrame(read(tiny_site / "data" / f"{about['file']}.js"), columns=about["columns"])
    stored_rows = results.read_words(tiny_results, "mask_prediction", step=16)
    assert len(rows) == about["count"] and rows["n"].sum() == stored_rows["n"].sum()
    assert rows["correct"].sum() == stored_rows["correct"].sum() > 0
    about = next(part for part in read(data(tiny_site) / "knowledge.js")["parts"] if part["name"] == "Every fact")
    rows = pd.DataFrame(read(tiny_site / "data" / f"{about['file']}.js"), columns=about["columns"])
    histories = results.read_histories(tiny_results)
    assert sorted(rows["subject"]) == sorted(histories["subject"]) and (rows["p(answer)"] > 0).all()


def test_token_axis_has_the_counts_of_the_checkpoints(tiny_site: Path, tiny_results: Run):
    """Zero has a positive position on the log axis."""
    about = read(tiny_site / "data" / "site.js")["runs"][tiny_results.name]
    tokens = about["units"]["tokens"]
    assert tokens["counts"] == about["bar"]["tokens"] == tokens["values"]["linear"]
    assert tokens["values"]["log"][1:] == tokens["counts"][1:] and tokens["values"]["log"][0] > 0
    assert tokens["axes"]["log"]["type"] == "log" and "flops" in about["units"]


def test_long_curves_have_smoothed_lines(own_run: Run, tmp_path: Path):
    """The browser could only smooth the points that are left."""
    rows = [{"split": "train", "step": i, "loss": float(i % 7)} for i in range(1, 1001)]
    (own_run.path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Panel("training", overview.training_curve, {"": {"quantity": "loss"}}).write([own_run], "page", tmp_path)
    plots = read(tmp_path / "data" / "page-training-0.js")["plots"]
    for scale in SCALES:
        assert set(plots[scale]) == {*map(str, WINDOWS)}
        (y,) = [trace["y"] for trace in plots[scale]["25"]["data"] if trace["name"] == "training, smoothed"]
        values = np.frombuffer(base64.b64decode(y["bdata"]), y["dtype"])[20:-20]
        assert max(values) < 3.3 and min(values) > 2.7  # the loss itself is 0 to 6


def test_full_disk_leaves_the_site_unchanged(tiny_results: Run, own_site: Path, monkeypatch):
    """The error says why, and no partial folder is left."""
    before = sorted(path.name for path in own_site.rglob("*"))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(site, "_write_frame", full)
    with pytest.raises(SiteError, match="No space left"):
        write_site([tiny_results], own_site)
    assert sorted(path.name for path in own_site.rglob("*")) == before
    assert [path.name for path in own_site.parent.iterdir() if "site" in path.name] == ["site"]


def test_page_csv_files_have_the_stored_scores(tiny_site: Path, tiny_results: Run):
    """Values and counts of Tokens, Knowledge and Grammar are compared, over 100 numbers."""
    compared = 0
    for page, panel, metric, key, value in (
        ("tokens", "accuracy", "mask_prediction", "group", "accuracy"),
        ("knowledge", "panels", knowledge.METRIC, "relation", "value"),
        ("grammar", "accuracy", grammar.METRIC, "group", "value"),
    ):
        scores = results.read_scores(tiny_results, metric).set_index(["group", "step"])
        shown = next(part for part in read(data(tiny_site) / f"{page}.js")["parts"] if part["name"] == panel)
        for choice in (choice for choice in shown["choices"] if not choice["label"].startswith("Token reconstruction")):
            table = pd.read_csv(StringIO(read(tiny_site / "data" / f"{choice['file']}.js")["csv"]))
            table = table.set_index([key, "step"])
            table = table.loc[table.index.intersection(scores.index)]
            assert table[value].tolist() == pytest.approx(scores.loc[table.index, "value"].tolist(), rel=1e-12)
            assert table["n"].tolist() == scores.loc[table.index, "n"].tolist()
            compared += table[value].size + table["n"].size
    assert compared > 100
