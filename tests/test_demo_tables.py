"""Tests of the demo's tables: the command writes the same page, and independent counts agree with it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from embryo_core.curves.phases import phases_of_log
from tools import demo_tables, markdown_tables

DEMO = Path(__file__).resolve().parents[1] / "data" / "demo"
RUNS = sorted(path.name for path in (DEMO / "runs").iterdir())
REFERENCE = [name for name in RUNS if name.endswith("-reference")]
OTHER_FAMILIES = ("small-next-token", "small-replaced-token")  # these runs have sections of their own
SMALL = [name for name in RUNS if name not in REFERENCE and not name.startswith(OTHER_FAMILIES)]


@pytest.fixture(scope="module")
def text() -> str:
    """Return the text of the page of tables."""
    return (DEMO / "tables.md").read_text(encoding="utf-8")


def table(text: str, run: str, name: str) -> pd.DataFrame:
    """Return the table `name` in the part of a run, as text, indexed by its first column."""
    part = text.split(f"## {run}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    first = next(i for i, line in enumerate(lines) if line.startswith(f"| {name} |"))
    head, _, *rest = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[first:])
    rows = []
    for cells in rest:
        if len(cells) != len(head) or set(cells) == {"---"}:
            break
        rows.append(cells)
    return pd.DataFrame(rows, columns=head).set_index(name)


def test_demo_tables_are_current(text: str) -> None:
    """The command `make demo-tables` would change nothing."""
    assert demo_tables.page() == text


def test_readme_names_every_run() -> None:
    """The README's table has no run that was removed."""
    readme = (DEMO / "README.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1].split("`") for row in readme.splitlines() if row.startswith("| `")]
    assert sorted(name for cells in rows for name in cells[1::2]) == RUNS


@pytest.mark.parametrize("run", SMALL)
def test_design_choices_agree_with_log_and_words(text: str, run: str) -> None:
    """The loss is that of the log; accuracies are counted over all words of the last step."""
    page_row = table(text, "Design choices", "run").loc[f"`{run}`"]
    lines = (DEMO / "runs" / run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    measures = [measure for row in map(json.loads, lines) for measure in row.get("measures", [])]
    last = [measure for measure in measures if measure["masking"] == "single pieces 15 %"][-1]
    assert page_row["loss"] == f"{last['loss']:.2f}" and page_row["accuracy"] == f"{last['accuracy']:.3f}"
    words = pd.read_parquet(DEMO / "results" / run / "words.parquet")
    for metric, column in (("mask_prediction", "prediction"), ("token_reconstruction", "reconstruction")):
        rows = words[words["metric"] == metric]
        rows = rows[rows["step"] == rows["step"].max()]
        assert page_row[column] == f"{rows['correct'].sum() / rows['n'].sum():.3f}"


@pytest.mark.parametrize("run", REFERENCE)
def test_prediction_table_agrees_with_the_words(text: str, run: str) -> None:
    """Accuracy, n and the share of the most frequent word are counted for conjunctions."""
    page_table = table(text, run, "mask prediction")
    words = pd.read_parquet(DEMO / "results" / run / "words.parquet")
    words = words[(words["metric"] == "mask_prediction") & (words["tag"] == "CC")]
    steps = [column for column in page_table if column.replace(",", "").isdecimal()]
    for step in steps:
        rows = words[words["step"] == int(step.replace(",", ""))]
        assert page_table.loc["conjunction", step] == f"{rows['correct'].sum() / rows['n'].sum():.3f}"
    assert page_table.loc["conjunction", "n"] == f"{rows['n'].sum():,}"
    most = rows.groupby(rows["word"].str.lower())["n"].sum().max() / rows["n"].sum()
    assert page_table.loc["conjunction", "most frequent word"] == f"{most:.3f}"


@pytest.mark.parametrize("run", REFERENCE)
def test_lama_table_agrees_with_the_ranks(text: str, run: str) -> None:
    """Precision at 1 and n come from the rank of each object, the baseline from the objects."""
    rows = table(text, run, "LAMA, precision at 1")
    cloze = pd.read_parquet(DEMO / "results" / run / "cloze.parquet", columns=["step", "relation", "object", "rank"])
    last = cloze[cloze["step"] == cloze["step"].max()]
    step = f"{last['step'].iloc[0]:,}"
    assert rows.loc["all facts", step] == f"{(last['rank'] == 1).mean():.3f}"
    assert rows.loc["all facts", "n"] == f"{len(last):,}"
    most = last.groupby("relation")["object"].agg(lambda objects: objects.value_counts().max()).sum() / len(last)
    assert rows.loc["all facts", "most frequent object"] == f"{most:.3f}"


@pytest.mark.parametrize("run", REFERENCE)
def test_held_out_accuracy_agrees_with_the_log(text: str, run: str) -> None:
    """The largest sample at the last step is compared: by position, and for sentence pairs or replaced tokens."""
    lines = (DEMO / "runs" / run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    last = max((row for row in map(json.loads, lines) if row["split"] == "heldout"), key=lambda row: row["step"])
    as_in_training = [measure for measure in last["measures"] if measure["masking"] == "training"]
    most = max(as_in_training, key=lambda measure: (-measure["length"], measure["n"]))
    step = f"{last['step']:,}"
    pieces = table(text, run, f"held-out pieces at step {step}").loc["training"].iloc[0]
    (group,) = most["positions"]
    assert pieces["n"] == f"{group['n']:,}" and pieces["accuracy"] == f"{group['accuracy']:.3f}"
    (other,) = (key.removesuffix("_accuracy") for key in most if key.endswith("_accuracy"))
    name = "replaced tokens" if other == "replaced_token" else other.replace("_", " ")
    rows = table(text, run, f"{name} at step {step}").loc["training"].set_index("length")
    shown = rows.loc[str(most["length"])]
    assert shown["n"] == f"{most[f'{other}_n']:,}" and shown["accuracy"] == f"{most[f'{other}_accuracy']:.3f}"
    if other == "replaced_token":
        assert shown["always “original”"] == f"{most['replaced_token_baseline']:.3f}"


def test_missing_value_is_an_empty_cell() -> None:
    """Counts are printed as whole numbers."""
    assert markdown_tables.row("a", pd.Series([0.5, None]), 1234, None) == "| a | 0.500 |  | 1,234 |  |"
    assert markdown_tables.table_steps([0, 1, 2, 4, 8, 16, 32, 64]) == [0, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("run", REFERENCE)
def test_phases_in_findings_agree_with_the_log(run: str) -> None:
    """findings.md says where each run takes off and where it falls again, with the intervals."""
    log = pd.read_json(DEMO / "runs" / run / "log.jsonl", lines=True)
    phase_of_name = {phase.name: phase for phase in phases_of_log(log)}
    falls = ["later fall"] if run != "electra-reference" else []  # its loss does not fall again
    assert [*phase_of_name] == ["start", "first fall", "plateau", "take-off", "later plateau", *falls]
    settings = json.loads((DEMO / "runs" / run / "run.json").read_text(encoding="utf-8"))["config"]
    late = [phase_of_name[name] for name in falls]
    for phase in late:
        assert phase.earliest < settings["constant_steps"] <= phase.start  # the learning rate begins to fall there
    words = " ".join((DEMO / "findings.md").read_text(encoding="utf-8").split())
    for phase in (phase_of_name["take-off"], *late):
        interval = f"{phase.earliest:,} to {phase.latest:,})"
        assert f"{phase.start:,} ({interval}" in words or f"{phase.start:,} (95 % interval {interval}" in words


@pytest.mark.parametrize("run", REFERENCE)
def test_minimal_pairs_table_agrees_with_the_scores(text: str, run: str) -> None:
    """For each set the two scores of every pair are compared; a tie counts half."""
    rows = table(text, run, "minimal pairs")
    scores = pd.read_parquet(DEMO / "results" / run / "pairs.parquet")
    last = scores[scores["step"] == scores["step"].max()]
    for name in ("blimp", "zorro"):
        own = last[last["paradigm"].str.startswith(f"{name}/")]
        right = ((own["good"] > own["bad"]) + 0.5 * (own["good"] == own["bad"])).mean()
        assert rows.loc[name, f"{last['step'].iloc[0]:,}"] == f"{right:.3f}"
        assert rows.loc[name, "n"] == f"{len(own):,}"
