"""Tests of compared runs: chosen by the link, drawn on every page, and named in a message if they cannot be drawn."""

import io
import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import figures
from embryo_core import results, runs
from embryo_core.figures.findings import verdict_name
from embryo_core.figures.markdown import literal
from embryo_core.findings import judge
from embryo_core.measurements import AttentionMap, Findings, Score, TaskScore
from embryo_core.types import Run, StepUnit
from tests.app.conftest import captions_of
from tests.app.views.conftest import PLANTED
from tests.conftest import checkpoint_at
from tests.tuned import store_tuning


def figures_of(page: AppTest) -> str:
    """Return the figures of a page as the JSON that is sent to the browser."""
    return " ".join(json.dumps(json.loads(chart.proto.spec)) for chart in page.get("plotly_chart"))


def info_messages(page: AppTest) -> str:
    """Return the info messages of a page, without escapes."""
    return " ".join(info.value for info in page.info).replace("\\", "")


@pytest.mark.parametrize(
    "page",
    ["overview", "tokens", "probing", "knowledge", "finetuning"],
)
def test_every_page_draws_compared_run(open_page, two_runs: Run, page: str) -> None:
    """A caption names both runs with their n, and the axis counts the tokens that the link asks for."""
    app = open_page(page, two_runs, beside="twin", axis="tokens")
    assert not app.exception and not app.error and app.query_params["beside"] == "twin"
    assert any("tiny (n = " in caption and "twin (n = " in caption for caption in captions_of(app))
    assert "tokens seen" in figures_of(app)


@pytest.mark.parametrize("page", ["tokens", "probing", "knowledge"])
@pytest.mark.usefixtures("all_opened")
def test_files_and_captions_name_their_run(open_page, two_runs: Run, monkeypatch, page: str) -> None:
    """A file names both runs, and a caption whose numbers are of one run names it."""
    printed = []
    monkeypatch.setattr(figures, "figure_files", lambda figure, key: printed.append(figure.small_print))
    app = open_page(page, two_runs, beside="twin")
    own = [words for words in captions_of(app) if "Numbers up to here are those of tiny." in words]
    assert own and all("twin (n = " in words for words in own)
    orders = page == "tokens"  # its figure of orders has a caption of its own that names the runs
    assert sum(words.startswith("Runs tiny, twin") for words in printed) == len(own) + orders
    printed.clear()
    open_page(page, two_runs)
    assert printed and all(words.startswith("Run tiny") for words in printed)


def test_differing_score_is_drawn_for_its_run_only(open_page, two_runs: Run) -> None:
    """The planted score is in the hover text of the run that has it, and not on the page of the other alone."""
    both = figures_of(open_page("tokens", two_runs, beside="twin", parts_of_speech="noun"))
    assert "<b>twin</b>, step 16: 87.7 %" in both
    assert "87.7 %" not in figures_of(open_page("tokens", two_runs, parts_of_speech="noun"))


PLANTS = {  # evaluation: page, metric, group and layer of the planted score, its hover text, further parameters
    "world_knowledge": ("knowledge", "world_knowledge", "all", None, "87.7 %", {}),
    "edge_probing": ("probing", "edge_probing_f1", "pos", 2, "87.7 %", {"probing": "layers", "probe_task": "pos"}),
    "ngram_divergence": ("overview", "ngram_divergence", "bigram", None, "0.88", {"open": "ngrams"}),
    "positions": ("overview", "positions_cosine", None, 1, "0.877", {"open": "similarity"}),
}


@pytest.mark.parametrize("evaluation", PLANTS)
def test_one_differing_score_distinguishes_copies(open_page, two_runs: Run, evaluation: str) -> None:
    """Each evaluation's page draws the planted value, and only for the run that has it."""
    page, metric, group, layer, hover, place = PLANTS[evaluation]
    twin = runs.read_run(two_runs.path.with_name("twin"))
    scores = results.read_scores(twin)
    for step, rows in scores[scores["metric"].str.startswith(evaluation)].groupby("step"):
        rows = rows.astype(object).where(rows.notna(), None)
        new_scores = [Score(row.metric, row.value, row.n, row.group, row.layer) for row in rows.itertuples()]
        here = [
            (score.metric, score.group, score.layer) == (metric, group, layer) and step == 16 for score in new_scores
        ]
        assert sum(here) == (step == 16)
        new_scores = [
            replace(one, value=PLANTED) if planted else one for one, planted in zip(new_scores, here, strict=True)
        ]
        results.write(checkpoint_at(twin, int(step)), evaluation, Findings(scores=new_scores))
    assert f"<b>twin</b>, step 16: {hover}" in figures_of(open_page(page, two_runs, beside="twin", **place))
    assert f"step 16: {hover}" not in figures_of(open_page(page, two_runs, **place))


def test_differing_loss_distinguishes_copies(open_page, two_runs: Run) -> None:
    """The Overview draws the planted loss at its step, for the run whose log has it."""
    log = two_runs.path.with_name("twin") / "log.jsonl"
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    (last,) = (row for row in rows if (row["split"], row["step"]) == ("heldout", 16))
    last["masked_lm_loss"] = 7.6543
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert "<b>twin</b>, step 16: 7.654" in figures_of(open_page("overview", two_runs, beside="twin"))
    assert "7.654" not in figures_of(open_page("overview", two_runs))


def log_of_a_plateau(until: int) -> str:
    """Return a log whose loss falls up to step 8, stays up to step `until`, and falls again."""
    steps = 2 ** np.arange(13)
    losses = 9 - 0.5 * np.log2(np.minimum(steps, 8)) - 0.5 * np.log2(np.maximum(steps, until) / until)
    measured = {"split": "heldout", "masked_lm_accuracy": 0.25}
    rows = [{"step": int(step), "masked_lm_loss": loss, **measured} for step, loss in zip(steps, losses, strict=True)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_differing_phase_distinguishes_copies(open_page, two_runs: Run) -> None:
    """The Overview's table has the steps of each phase; of its figures only that of the loss differs."""
    figures = []
    for name, until in ((two_runs.name, 64), ("twin", 512)):
        (two_runs.path.with_name(name) / "log.jsonl").write_text(log_of_a_plateau(until), encoding="utf-8")
        page = open_page("overview", two_runs, run=name, open="phases,objective")
        table = next(frame.value for frame in page.table if "Phase" in frame.value)
        assert table["Phase"].tolist() == [literal(phase) for phase in ("first fall", "plateau", "take-off")]
        assert table["Steps"].tolist() == [literal(steps) for steps in ("1 to 8", f"8 to {until}", f"{until} to 4,096")]
        figures.append([chart.proto.spec for chart in page.get("plotly_chart")])
    differ = [one != other for one, other in zip(*figures, strict=True)]
    assert len(differ) > 1 and differ[0] and not any(differ[1:])


def test_differing_task_score_distinguishes_copies(open_page, two_runs: Run) -> None:
    """The Fine-tuning page draws the planted accuracy for the run that has it."""
    twin = runs.read_run(two_runs.path.with_name("twin"))
    for run in (two_runs, twin):
        store_tuning(run, "rte")
    planted = [TaskScore("rte", 1, of, "accuracy", value, 4) for of, value in (("model", PLANTED), ("majority", 0.75))]
    results.write(checkpoint_at(twin, 16), "finetuning:rte:1", Findings(task_scores=planted))
    assert "<b>twin</b>, step 16: 0.877" in figures_of(open_page("finetuning", two_runs, beside="twin", task="rte"))
    assert "step 16: 0.877" not in figures_of(open_page("finetuning", two_runs, task="rte"))


def test_glue_averages_use_tasks_of_both_runs(open_page, two_runs: Run) -> None:
    """Two runs share one task at first, which gives no average, and two later."""
    twin = runs.read_run(two_runs.path.with_name("twin"))
    store_tuning(two_runs, "rte")
    store_tuning(two_runs, "sst2")
    store_tuning(twin, "rte")
    page = open_page("finetuning", two_runs, beside="twin")
    assert "GLUE average" not in figures_of(page) and not page.exception
    store_tuning(twin, "sst2")
    page = open_page("finetuning", two_runs, beside="twin")
    assert "GLUE average" in figures_of(page)
    assert any("GLUE average over SST-2, RTE" in caption for caption in captions_of(page))


def test_differing_attention_map_distinguishes_copies(
    open_page, two_runs: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Attention page draws the planted weight at its step, in its head and run, and nowhere else."""
    twin, shown = runs.read_run(two_runs.path.with_name("twin")), {}
    weights, sentences = results.read_attention_step(twin, 16)  # [layers, heads, L, L]
    weights[0, 1, 2, 1] = PLANTED
    maps = [AttentionMap(layer + 1, head + 1, weights[layer, head], sentences) for layer, head in np.ndindex(2, 2)]
    results.write(checkpoint_at(twin, 16), "attention", Findings(attention=maps))
    monkeypatch.setattr(
        "app.components.head_maps.head_history", lambda history, *_: shown.update({history.run: history})
    )
    for head, differing in (("2", [(2, 2, 1)]), ("1", [])):
        assert not open_page("attention", two_runs, beside="twin", layer="1", head=head).exception
        one, other = (shown[run.name].weights for run in (two_runs, twin))  # [S, L, L]
        assert [tuple(map(int, where)) for where in np.argwhere(one != other)] == differing


@pytest.mark.parametrize(
    ("page", "query", "column", "values"),
    [
        ("probing", {"probing": "layers"}, "score", {"f1"}),
        ("probing", {"probing": "layers", "beside": "twin"}, "score", {"f1"}),
        ("probing", {"probing": "order"}, "task_y", {"srl"}),
        ("attention", {"section": "heads", "pattern": "sep"}, "change", {"0.05"}),
        ("attention", {"section": "heads", "pattern": "head_to_dependent"}, "change", {"baseline"}),
    ],
)
@pytest.mark.usefixtures("all_opened")
def test_file_rows_record_choices_of_pickers(
    open_page, two_runs: Run, monkeypatch, page, query, column, values
) -> None:
    """Each row has the chosen score, tasks or rule, and the data, so that a file can be read without the page."""
    tables = []
    monkeypatch.setattr(figures, "_download", lambda file, name: tables.append(file.content()))
    open_page(page, two_runs, **query)
    tables = [pd.read_csv(io.StringIO(table), dtype=str) for table in tables]
    (table, *_) = [table for table in tables if column in table]
    assert values <= set(table[column].dropna()) and table["data"].notna().any()


def test_differing_masking_is_noted_beside_masked_accuracy(open_page, two_runs: Run) -> None:
    """The caption states the shares of [MASK], random and unchanged pieces if the runs differ in them."""
    twin = runs.read_run(two_runs.path.with_name("twin"))
    note = "Each run's masked accuracy is measured with its own masking: tiny "
    for shares, said in (((0.8, 0.1), False), ((0.85, 0.0), True)):
        twin.config.update(zip(("mask_token_share", "random_token_share"), shares, strict=True))
        runs.write_run(twin)
        page = open_page("compare", two_runs, beside="twin")
        assert any(note in caption for caption in captions_of(page)) == said and not page.exception
    (caption,) = (caption.replace("\\", "") for caption in captions_of(page) if note in caption)
    assert f"{note}80 % [MASK], 10 % random, 10 % as they are; twin 85 % [MASK], 15 % as they are." in caption


def test_differing_weights_distinguish_copies(open_page, two_runs: Run, monkeypatch) -> None:
    """One checkpoint of the twin has the weights of another step; the answers on the Query page differ only there."""
    monkeypatch.setattr("embryo_core.figures.query_captions.MIN_LEARNED_PROBABILITY", 0.0)  # their weights are random
    first, last = (runs.checkpoint(runs.read_run(two_runs.path.with_name("twin")), step) for step in (8, 16))
    shutil.copyfile(first.path / "model.safetensors", last.path / "model.safetensors")
    runs.write_manifest(last.path, last.step, last.sequences, last.tokens)
    for step, differs in ((8, False), (16, True)):
        texts = {"text": "the [MASK] sat .", "compare": "run", "other": "twin"}
        page = open_page("query", two_runs, **texts, step=str(step), open="lens")
        assert not page.exception and not page.error
        answers, layers = (
            [frame.value for frame in page.dataframe if "token" in frame.value][i : i + 2] for i in (0, 2)
        )
        for one, other in (answers, layers):
            assert one.equals(other) != differs
    final = [metric.value for metric in page.metric if metric.label == "Final answer"]
    assert final == [literal(table["token"][0]) for table in answers] and final[0] != final[1]


def test_unknown_compared_run_is_named(open_page, two_runs: Run) -> None:
    """The page has no error, and the URL is unchanged."""
    page = open_page("tokens", two_runs, beside="gone,twin")
    assert "Run 'gone' is not here" in info_messages(page) and page.query_params["beside"] == "gone,twin"
    assert not page.exception


def test_compared_run_without_results_is_named(open_page, two_runs: Run) -> None:
    """Each page says that the run has not been measured, instead of leaving it out silently."""
    shutil.rmtree(two_runs.results.with_name("twin"))
    for page in ("tokens", "knowledge", "probing", "finetuning"):
        assert "Run 'twin' has not been measured for this figure." in info_messages(
            open_page(page, two_runs, beside="twin")
        )


def test_run_without_unit_of_axis_is_named(open_page, two_runs: Run) -> None:
    """A compared run without word frequencies or with other steps is reported; a run alone is drawn over its steps."""
    twin = runs.read_run(two_runs.path.with_name("twin"))
    runs.write_run(replace(twin, step_unit=StepUnit.TOKENS))
    assert "does not record its steps in updates" in info_messages(open_page("overview", two_runs, beside="twin"))
    (twin.path / "frequencies.tsv").unlink()
    assert "does not record how many words" in info_messages(
        open_page("overview", two_runs, beside="twin", axis="words")
    )
    (two_runs.path / "frequencies.tsv").unlink()
    alone = open_page("overview", two_runs, axis="words")
    assert "the axis counts steps" in info_messages(alone) and not alone.exception


def test_attention_page_shows_same_head_of_two_runs(open_page, two_runs: Run) -> None:
    """Each heading has the name of its run."""
    page = open_page("attention", two_runs, beside="twin", layer="1", head="2", axis="share")
    headings = [heading.value for heading in page.header]
    assert {"tiny, layer 1, head 2", "twin, layer 1, head 2"} <= set(headings) and not page.exception


def test_seeds_of_one_design_are_averaged(open_page, two_runs: Run) -> None:
    """The runs differ only in their seeds, and the caption gives the number of seeds."""
    other = runs.read_run(two_runs.path.with_name("twin"))
    other.config.update(two_runs.config, seed=99)
    runs.write_run(other)
    page = open_page("tokens", two_runs, beside="twin", parts_of_speech="noun")
    assert any("mean of 2 seeds" in caption for caption in captions_of(page))


def test_findings_table_has_verdicts_of_each_run(open_page, two_runs: Run) -> None:
    """The verdicts are those of `judge`, and the chosen finding has the counts of the second run too."""
    page = open_page("findings", two_runs, beside="twin", finding="four_fates")
    assert not page.exception and not page.error
    table = page.dataframe[0].value
    other = judge(runs.read_run(two_runs.path.with_name("twin")))
    assert table["verdict, run 2"].tolist() == [verdict_name(judgement.verdict) for judgement in other]
    assert any(text.value.startswith("twin: ") for text in page.markdown)
    assert "verdict, run 2" not in open_page("findings", two_runs).dataframe[0].value


def test_query_page_refers_to_its_own_choice_of_runs(open_page, two_runs: Run) -> None:
    """A caption names "Compare with"; no runs to overlay are offered, but the unit of the axis is."""
    page = open_page("query", two_runs, beside="twin")
    assert any("Compare with" in caption for caption in captions_of(page))
    assert not [box for box in page.multiselect if box.label == "Compared runs"]
    assert "Unit of the axis" in [box.label for box in page.selectbox]


@pytest.mark.parametrize("quantity", ["f1", "selectivity"])
def test_layer_figures_draw_baseline_of_f1_only(open_page, two_runs: Run, quantity: str) -> None:
    """The majority baseline applies to F1 but not to selectivity, with one run and with two."""
    pages = [
        open_page("probing", two_runs, probing="layers", score=quantity, **query) for query in ({}, {"beside": "twin"})
    ]
    for page in pages:
        assert not page.exception and ("baseline" in figures_of(page)) == (quantity == "f1")


def test_menu_says_that_no_other_run_exists(open_page, tiny_results: Run) -> None:
    """An empty menu of compared runs would otherwise go unexplained."""
    assert any("There is no other run" in caption for caption in captions_of(open_page("overview", tiny_results)))
