"""Tests of the fine-tuning figures: scores, controls, published scores, headlines, and captions."""

from collections.abc import Sequence

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.figures import finetuning
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.finetuning_tables import AVERAGE, EXACT, glue_average, score_table
from embryo_core.measurements import Findings, TaskScore, TuningPoint
from embryo_core.types import Run, StepUnit
from tests.conftest import checkpoint_at, copy_run

STORED = {  # by task and metric: scores of all seeds by step, and the control's score
    ("cola", "matthews"): ({0: [0.0, 0.1], 8: [0.2, 0.4], 16: [0.1, 0.3]}, 0.0),
    ("rte", "accuracy"): ({0: [0.5], 8: [0.6]}, 0.52),
    ("squad", "f1"): ({8: [0.3]}, 0.0),
    ("squad", "exact"): ({8: [0.2]}, 0.0),
}


@pytest.fixture
def table() -> pd.DataFrame:
    """Return the scores of CoLA with two seeds, RTE with one, and SQuAD at one step."""
    rows = [
        {"step": step, "task": task, "seed": seed, "predictor": predictor, "metric": metric, "value": value, "n": 50}
        for (task, metric), (values, control) in STORED.items()
        for step, by_seed in values.items()
        for seed, model in enumerate(by_seed, 1)
        for predictor, value in (("model", model), ("majority", control))
    ]
    return score_table(pd.DataFrame(rows))


def store(run: Run, tasks: Sequence[str] = ("cola", "rte", "squad"), steps: Sequence[int] = (0, 8, 16)) -> Run:
    """Store the same scores as results of a run, each with a training curve."""
    names = [(task, seed) for task in tasks for seed in (1, 2)]
    for task, seed in names:
        of_task = {metric: known for (one, metric), known in STORED.items() if one == task}
        at_steps = [step for step in steps if any(len(values.get(step, ())) >= seed for values, _ in of_task.values())]
        if not at_steps:
            continue
        name, identity = f"finetuning:{task}:{seed}", {"data": task, "sha256": "0" * 64, "protocol": "quick"}
        results.note_dataset(run, name, identity, {"note": f"50 examples of {task}"})
        for step in at_steps:
            scores = [
                TaskScore(task, seed, predictor, metric, value, 50)
                for metric, (values, control) in of_task.items()
                for predictor, value in (("model", values[step][seed - 1]), ("majority", control))
            ]
            curve = [TuningPoint(task, seed, update, 0.5, 0.1) for update in (3, 6)]
            results.write(checkpoint_at(run, step), name, Findings(task_scores=scores, tuning=curve), identity)
    return run


def test_curve_is_the_mean_of_seeds_with_their_range(table):
    """A task has only its first metric: SQuAD has F1 and not exact match."""
    cola = table[table["task"] == "cola"].set_index("step")
    assert cola["value"].tolist() == pytest.approx([0.05, 0.3, 0.2])
    assert (cola["low"][8], cola["high"][8], cola["seeds"][8], cola["n"][8], cola["control"][8]) == (0.2, 0.4, 2, 50, 0)
    assert table.loc[table["task"] == "squad", "metric"].tolist() == ["f1"]


def test_exact_match_is_a_separate_curve(table):
    """Exact match counts as another task next to SQuAD, whose score is F1."""
    exact = table[table["task"] == EXACT]
    assert exact[["metric", "value", "n"]].values.tolist() == [["exact", 0.2, 50]]


def test_average_covers_glue_tasks_at_common_steps(table):
    """RTE has no step 16, and SQuAD is not part of GLUE; a single GLUE task has no average."""
    average = glue_average(table)
    assert average["step"].tolist() == [0, 8]
    assert average["value"].tolist() == pytest.approx([0.275, 0.45])
    assert average["tasks"].iloc[0] == "CoLA, RTE"
    assert glue_average(table[table["task"] != "rte"]).empty  # CoLA and SQuAD remain


def test_tasks_and_average_have_distinct_styles():
    """Exact match has SQuAD's colour and another symbol."""
    tasks = [
        "cola",
        "mnli",
        "mrpc",
        "qnli",
        "rte",
        "squad",
        EXACT,
        "sst2",
        "stsb",
        AVERAGE,
    ]
    styles = finetuning.task_styles(tasks)
    assert set(styles) == set(tasks) and len(set(styles.values())) == 10
    assert len({colour for colour, _ in styles.values()}) == 9 and styles["squad"][0] == styles[EXACT][0]
    assert set(finetuning.task_styles([EXACT])) == {EXACT}


def test_figure_has_scores_controls_and_published_scores(own_run: Run):
    """Points carry task and step for a click; the best step has a larger marker, and a single seed has no band."""
    figure = finetuning.scores([store(own_run)], AxisChoice(), ["cola", "rte", "squad"], published=True)
    traces = {trace.name: trace for trace in figure.plot.data}
    cola = traces["CoLA"]
    assert [tuple(point[:2]) for point in cola.customdata] == [("cola", 0), ("cola", 8), ("cola", 16)]
    assert list(cola.marker.size) == [6, 11, 6] and list(cola.y) == pytest.approx([0.05, 0.3, 0.2])
    assert {f"{name}, baseline" for name in ("CoLA", "RTE", "SQuAD")} <= traces.keys()
    assert "CoLA, seeds" in traces and "RTE, seeds" not in traces
    assert list(traces["SQuAD, ALBERT-base"].y) == [0.893, 0.893] and "CoLA, ALBERT-base" not in traces
    assert set(figure.table.loc[figure.table["task"] == "rte", "data"]) == {"50 examples of rte"}
    assert "CoLA gains most" in figure.headline and "0.050 to 0.200" in figure.headline


def test_caption_names_published_scores_only_if_drawn(tiny_run: Run, tmp_path):
    """They are drawn on request, for a single run with scores."""
    one, other, bare = (copy_run(tiny_run, tmp_path / name) for name in ("one", "other", "bare"))
    for run in (one, other):
        store(run, ["squad"])
    for shown_runs, published, drawn in (
        ([one], False, False),
        ([one], True, True),
        ([bare, one], True, True),
        ([one, other], True, False),
    ):
        figure = finetuning.scores(shown_runs, AxisChoice(), ["squad"], published=published)
        assert any("ALBERT-base" in (trace.name or "") for trace in figure.plot.data) == drawn
        assert ("ALBERT-base" in str(figure.caption)) == drawn


def test_only_the_first_of_equal_best_scores_is_large(own_run: Run, monkeypatch: pytest.MonkeyPatch):
    """The table of tasks names this step too."""
    monkeypatch.setitem(STORED, ("cola", "matthews"), ({0: [0.0, 0.0], 8: [0.4, 0.2], 16: [0.2, 0.4]}, 0.0))
    figure = finetuning.scores([store(own_run)], AxisChoice(), ["cola"])
    cola = next(trace for trace in figure.plot.data if trace.name == "CoLA")
    assert list(cola.marker.size) == [6, 11, 6]


def test_published_score_is_in_the_panel_of_its_task(own_run: Run):
    """The option `panels` gives each task a panel."""
    figure = finetuning.scores([store(own_run)], AxisChoice(), ["cola", "rte", "squad"], panels=True, published=True)
    traces = {trace.name: trace for trace in figure.plot.data}
    assert len({traces[name].yaxis for name in ("CoLA", "RTE", "SQuAD")}) == 3
    assert traces["SQuAD, ALBERT-base"].yaxis == traces["SQuAD"].yaxis


def test_reference_lines_are_marks_at_a_single_step(own_run: Run):
    """A line from one step to the same step would have no length."""
    figure = finetuning.scores([store(own_run, ["squad"])], AxisChoice(), ["squad"], published=True)
    marks = {trace.name: trace for trace in figure.plot.data if trace.mode == "markers"}
    assert {"SQuAD, baseline", "SQuAD, ALBERT-base"} <= marks.keys()
    assert all(marks[name].marker.symbol == "line-ew" for name in ("SQuAD, baseline", "SQuAD, ALBERT-base"))


def test_average_of_several_runs_covers_common_tasks(tiny_run: Run, tmp_path):
    """A task that one run lacks is not averaged; a run that was not fine-tuned is named as missing."""
    one, other, bare = (copy_run(tiny_run, tmp_path / name) for name in ("one", "other", "bare"))
    store(one, ["cola", "rte"])
    store(other, ["rte"])
    assert AVERAGE not in set(finetuning.scores([one, other], AxisChoice(), ["cola", "rte"]).table["task"])
    store(other, ["cola"])
    figure = finetuning.scores([one, other, bare], AxisChoice(), ["cola", "rte"])
    assert AVERAGE in set(figure.table["task"]) and "GLUE average over CoLA, RTE" in str(figure.caption)
    assert figure.missing == ("tiny",)


def test_published_score_depends_on_the_version_of_squad(table):
    """An empty answer is right for half of the questions of version 2.0, and for almost none of version 1.1."""
    squad = table[table["task"] == "squad"]
    for task, control, score in (
        ("squad", 0.0, 0.893),
        ("squad", 0.5, 0.8),
        (EXACT, 0.0003, 0.823),  # three gold answers of version 1.1 are "."
        (EXACT, 0.5, 0.771),
        ("cola", 0.0, None),
    ):
        assert finetuning.published_score(task, squad.assign(control=control)) == score


def test_tuning_curve_has_loss_and_score_of_each_seed(own_run: Run):
    """Each update has a tick unless there are many."""
    figure = finetuning.tuning_curve([store(own_run)], AxisChoice(), "cola", 8, "matthews")
    assert len(figure.plot.data) == 4 and list(figure.plot.data[0].x) == [3, 6] and figure.suffix == "step8"
    assert list(figure.plot.layout.xaxis.tickvals) == [0, 3, 6]
    long = pd.DataFrame({"seed": 1, "update": range(1, 40), "train_loss": 0.5, "dev_score": 0.1})
    assert finetuning.plot_tuning_curve(long, "matthews").layout.xaxis.tickvals is None


# === Words ===


def caption_of(table: pd.DataFrame, average: pd.DataFrame | None = None, **sources: dict) -> str:
    """Return the caption of a table of scores; keywords are names of sources, with _ for each colon."""
    none = pd.DataFrame({"step": [], "value": [], "tasks": []})
    sources = {name.replace("_", ":"): noted for name, noted in sources.items()}
    return str(finetuning.describe_scores(table, none if average is None else average, sources, StepUnit.UPDATES))


def test_headline_names_the_task_that_gains_most():
    """With one step it is the task farthest above its control; if no score rises or is above, the headline says so."""
    axis = StepAxis("log", step_unit=StepUnit.UPDATES)
    table = pd.DataFrame({"task": ["cola", "cola", "rte", "rte"], "step": [0, 16] * 2, "value": [0.0, 0.4, 0.5, 0.6]})
    table = table.assign(metric=["matthews"] * 2 + ["accuracy"] * 2, n=[9, 9, 277, 277], control=[0.0, 0.0, 0.53, 0.53])
    sentence = finetuning.headline(table, axis)
    assert "CoLA gains most" in sentence and "0.000 to 0.400" in sentence
    falling = table.assign(value=[0.4, 0.0, 0.6, 0.5])
    assert "No score is higher" in finetuning.headline(falling, axis)
    last = table[table["step"] == 16]
    assert "CoLA is farthest above its control" in (headline := finetuning.headline(last, axis)) and "0.400" in headline
    assert "No score is above its control" in finetuning.headline(last.assign(control=0.9), axis)


def test_caption_names_protocol_seeds_and_averaged_tasks(table):
    """Results from elsewhere may lack the protocol; seeds with other data than the first are named as left out."""
    rte = table[table["task"] == "rte"]
    assert "protocol quick; a single seed" in caption_of(rte, finetuning_rte_1={"protocol": "quick"})
    assert "protocol unknown; " in caption_of(rte, finetuning_rte_1={}) and "average" not in caption_of(rte)
    average = glue_average(table)
    assert "; up to 2 seeds; GLUE average over CoLA, RTE)" in caption_of(table, average)
    sources = {f"finetuning_rte_{seed}": {"sha256": data} for seed, data in ((1, "a"), (2, "b"), (10, "a"))}
    assert "the task's first seed: RTE with seed 2." in caption_of(rte, **sources)


def test_fine_tuned_random_weights_are_a_second_control(table):
    """If step 0 was not fine-tuned, the caption says so and names the first step."""
    rte = table[table["task"] == "rte"]
    assert "Step 0, random weights" in caption_of(rte)
    later = caption_of(rte.assign(step=[1024, 2048]))
    assert "not fine-tuned" in later and "step 1,024" in later


def test_choice_among_tied_learning_rates_is_explained():
    """The caption says what decided; it is empty if one rate was best, or if the record is missing or malformed."""
    rates = {"0.0001": 0.0, "0.0002": 0.0, "0.0004": -0.1}
    noted = {"learning_rate": 1e-4, "rate_step": 16, "rates": rates}
    assert "0.0001, 0.0002 had the same score; 0.0001 was chosen because" in finetuning.describe_tuning(noted).details
    losses = {"0.0001": 0.6, "0.0002": 0.5}
    assert "lowest loss" in finetuning.describe_tuning(noted | {"learning_rate": 2e-4, "rate_losses": losses}).details
    for other in ({}, noted | {"rates": rates | {"0.0004": 0.1}}, {"learning_rate": "x", "rates": {"1": [2]}}):
        assert finetuning.describe_tuning(other).details == ""
