"""Tests of the Compare page: the runs that it opens beside, differing settings, and the files of comparisons."""

import io
from dataclasses import replace

import pandas as pd
import pytest

from app import figures
from app.views.compare import default_runs
from embryo_core import runs
from embryo_core.types import Run
from tests.app.conftest import captions_of


def test_differing_design_is_marked(open_page, two_runs: Run) -> None:
    """The Compare page marks the setting that differs, and has a section on its effect."""
    page = open_page("compare", two_runs, beside="twin")
    assert not page.exception and not page.error
    table = page.table[0].value.set_index("setting")
    assert "dropout" in table.index[table["≠"] == "≠"] and "family" in table.index[table["≠"] == ""]
    assert "What the dropout changed" in [heading.value for heading in page.header]


def test_compare_page_opens_beside_runs_with_one_other_choice(open_page, two_runs: Run) -> None:
    """The link names no compared run."""
    page = open_page("compare", two_runs, run=two_runs.name)
    assert "What the dropout changed" in [heading.value for heading in page.header]


def test_run_without_variants_is_compared_with_other_families(tiny_run: Run) -> None:
    """Each family gives the seeds of its design of the same size and plan, or its longest if no size is equal."""

    def other(name: str, family: str, steps: int = 16, **config: object) -> Run:
        config = tiny_run.config | config
        return replace(
            tiny_run, name=name, path=tiny_run.path / name, family=family, config=config, planned_steps=(steps,)
        )

    seeds = [other(f"seed{seed}", "albert", seed=seed) for seed in (1, 2)]
    longer, dropout = other("longer", "albert", 32), other("dropout", "albert", hidden_dropout_prob=0.5)
    large = [other("bert", "bert", 64, hidden_size=99), other("electra", "electra", 64, hidden_size=99)]
    decoder = other("decoder", "gpt2")
    known = [dropout, longer, *seeds, *large, decoder]
    assert default_runs(decoder, known) == ["seed1", "seed2"]
    again = other("again", "gpt2", seed=2)
    assert default_runs(decoder, [*known, again]) == ["again", "seed1", "seed2"]
    assert default_runs(large[0], known) == ["electra"]
    assert default_runs(large[0], [*seeds, longer, large[0]]) == ["longer"]


@pytest.mark.usefixtures("all_opened")
def test_names_of_comparison_files_have_no_spaces(open_page, two_runs: Run) -> None:
    """The names include those of categories, such as parts of speech."""
    keys = [button.proto.id for button in open_page("compare", two_runs, beside="twin").get("download_button")]
    assert any(key.endswith("-parts-of-speech-acquisition") for key in keys) and not [key for key in keys if " " in key]


@pytest.mark.usefixtures("all_opened")
def test_comparison_files_name_every_run(open_page, two_runs: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small print and citation of a picture name both runs; rows of a difference also name the run subtracted."""
    printed, tables = [], []
    monkeypatch.setattr(
        figures, "figure_files", lambda figure, key: printed.append((figure.title, figure.small_print, figure.citation))
    )
    keep = figures._download

    def watch(file: figures.File, name: str) -> None:
        tables.append(pd.read_csv(io.StringIO(str(file.content()))))
        keep(file, name)

    monkeypatch.setattr(figures, "_download", watch)
    open_page("compare", two_runs, beside="twin")
    assert len(printed) == 2 and all("Runs tiny, twin" in words for texts in printed for words in texts[1:])
    titles = [title for title, *_ in printed]
    assert titles == [
        "What the dropout changed (accuracy minus that of tiny)",
        "Order of acquisition: mask prediction",
    ]
    changed, acquired = tables
    assert set(acquired["run"]) == {"tiny", "twin"} and acquired["data"].notna().all()
    assert set(acquired["metric"]) == {"mask_prediction"}
    assert set(changed["run"]) == {"twin"} and set(changed["minus"]) == {"tiny"}


def test_settings_that_changed_together_share_one_figure(open_page, two_runs: Run) -> None:
    """The caption says that their effects cannot be distinguished."""
    twin = runs.read_run(two_runs.path.with_name("twin"))
    twin.config["masked_share"] = 0.5
    runs.write_run(twin)
    page = open_page("compare", two_runs, beside="twin")
    changed = [heading.value for heading in page.header if heading.value.startswith("What")]
    assert changed == ["What changed: dropout, masked share"]
    assert any("cannot distinguish their effects" in caption for caption in captions_of(page))


def test_compare_page_warns_of_running_text(two_runs: Run, open_page):
    """Accuracies on running text are those of another task; runs that read text in the same way get no warning."""
    quiet = open_page("compare", two_runs, beside="twin")
    assert not quiet.exception and not [message for message in quiet.warning if "running text" in message.value]
    sources = two_runs.results.with_name("twin") / "sources.json"
    sources.write_text(sources.read_text().replace("of treebank.conllu", "of treebank.conllu; read as running text"))
    (warning,) = [
        message.value
        for message in open_page("compare", two_runs, beside="twin").warning
        if "running text" in message.value
    ]
    assert "twin read sentences as running text" in warning
