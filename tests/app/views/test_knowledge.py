"""Tests of the Knowledge page: with results, with broken files, and with hostile texts."""

import pytest

from embryo_core import results
from embryo_core.measurements import ClozeAnswer, Findings, Score, VariantAnswer
from embryo_core.metrics.lama_variants import share_scores
from embryo_core.types import Run
from tests.app.conftest import captions_of
from tests.app.views.conftest import box
from tests.conftest import checkpoint_at


@pytest.fixture
def asked_run(own_run: Run) -> Run:
    """Return a run that was asked three facts of P36 at its three steps; two subjects contain markup."""
    answers = {"Italy": ("Rome", "-++"), "<script>alert(1)</script>": ("Bern", "+-+"), "**Peru**": ("Lima", "---")}
    for i, step in enumerate((0, 8, 16)):
        cloze = [
            ClozeAnswer(f"P36/{subject}", "P36", subject, object, 1 + 4 * (marks[i] == "-"), 0.2, "Rome", 0.3)
            for subject, (object, marks) in answers.items()
        ]  # fmt: skip
        right = sum(answer.rank == 1 for answer in cloze)
        scores = [
            Score("world_knowledge", right / 3, 3, "P36"),
            Score("world_knowledge", right / 3, 3, "all"),
            Score("world_knowledge_coverage", 0.6, 5, "P36"),
        ]
        results.write(checkpoint_at(own_run, step), "world_knowledge", Findings(scores=scores, cloze=cloze))
    return own_run


def test_page_shows_relations_coverage_and_facts(open_view, tiny_results):
    """The captions give the number of facts asked, and the page has three tables."""
    test = open_view(tiny_results)
    assert not test.exception and not test.error
    facts = results.read_cloze(tiny_results)["fact"].nunique()
    assert any(f"Of {facts:,} facts asked" in caption for caption in captions_of(test))
    assert len(test.dataframe) == 3


def test_page_compares_precision_with_most_frequent_object(open_view, own_run):
    """Answering "Rome" is always right, and 20 of the 100 subjects are named Rome; one sentence has these numbers."""
    subjects = ["Rome"] * 20 + [f"town {i}" for i in range(80)]
    cloze = [ClozeAnswer(f"{i}", "P36", name, "Rome", 1 + (i > 0), 0.2, "", 0.3) for i, name in enumerate(subjects)]
    scores = [Score("world_knowledge", 0.01, 100, group) for group in ("P36", "all")]
    scores.append(Score("world_knowledge_coverage", 1.0, 100, "P36"))
    results.write(checkpoint_at(own_run, 8), "world_knowledge", Findings(scores=scores, cloze=cloze))
    test = open_view(own_run, unnamed="on")
    assert not test.exception
    texts = [text.value.replace("\\", "") for text in test.markdown]
    (said,) = [text for text in texts if "the run's 1.0 %" in text]
    for number in ("100.0 % of 100 facts", "20 facts (20 %)", "0.0 % of 80 correctly", "baseline's 100.0 %"):
        assert number in said
    assert any("Left out: 20 facts" in caption for caption in captions_of(test))


def test_search_without_hits_shows_no_fact(open_view, asked_run):
    """A message takes its place, and the URL keeps the fact, which is shown again once the search is cleared."""
    test = open_view(asked_run, fact="P36/Italy", facts="nowhere")
    assert not test.exception and len(test.dataframe) == 2 and "Fact" not in [box.label for box in test.selectbox]
    assert any(info.value.startswith("No fact of this relation is found") for info in test.info)
    assert test.query_params["fact"] == "P36/Italy"
    next(box for box in test.text_input if box.label == "Search").set_value("").run()
    assert box(test, "Fact").value == "P36/Italy" and len(test.dataframe) == 3


def test_tables_match_stored_answers(open_view, asked_run):
    """The tables have the relation's counts, the answers at the chosen step, and one fact's answers at every step."""
    test = open_view(asked_run, step="8", fact="P36/Italy")
    facts, history, relations = (table.value for table in test.dataframe)
    assert relations[["relation", "asked", "all", "learned", "oscillating", "never learned"]].values.tolist() == [
        ["P36", 3, 5, 1, 1, 1]
    ]
    assert facts.set_index("subject")["rank"].to_dict() == {"Italy": 1, "<script>alert(1)</script>": 5, "**Peru**": 5}
    assert list(history["rank"]) == [5, 1, 1]
    assert any("At step 8, 1 of 3 facts" in caption for caption in captions_of(test))


def test_subjects_are_never_rendered_as_markup(open_view, asked_run):
    """Subjects appear only in tables and boxes, not in elements that render Markdown."""
    test = open_view(asked_run, fact="P36/<script>alert(1)</script>")
    assert not test.exception
    written = [element.value for element in (*test.markdown, *test.caption, *test.header, *test.title)]
    assert not any("script" in text or "Peru" in text for text in written)
    assert box(test, "Fact").value == "P36/<script>alert(1)</script>"


def test_facts_are_filtered_by_history_and_search(open_view, asked_run):
    """The table has the facts with the chosen history, or those that contain the text; the URL contains the search."""
    test = open_view(asked_run, history="learned")
    assert list(test.dataframe[0].value["subject"]) == ["Italy"]
    box(test, "History").select("any").run()
    test.text_input[0].input("peru").run()
    assert list(test.dataframe[0].value["subject"]) == ["**Peru**"]
    assert test.query_params["facts"] in ("peru", ["peru"])


def test_empty_choice_of_relations_gets_message(open_view, asked_run):
    """The page asks for a relation, and still shows its tables of facts."""
    test = open_view(asked_run)
    test.multiselect[0].set_value([]).run()
    assert not test.exception
    assert "Choose at least one relation" in test.info[0].value
    assert len(test.dataframe) == 3


@pytest.mark.parametrize("table", ["scores", "cloze"])
def test_broken_file_is_named_in_message(open_view, own_run, table):
    """A results file that is not Parquet leads to an error message instead of a traceback."""
    own_run.results.mkdir(parents=True)
    (own_run.results / f"{table}.parquet").write_bytes(b"not parquet")
    test = open_view(own_run)
    assert not test.exception
    assert f"{table}.parquet" in test.error[0].value.replace("\\", "")


@pytest.mark.parametrize("kept", [(), ("P36",)], ids=("no facts at all", "facts of one relation of two"))
def test_scores_without_their_facts_are_shown(open_view, own_run: Run, kept: tuple[str, ...]) -> None:
    """The results have scores of two relations but no answers to their facts, or only those of one relation."""
    for step in (0, 8, 16):
        scores = [Score("world_knowledge", 0.5, 2, group) for group in ("P36", "P19", "all")]
        cloze = [
            ClozeAnswer(f"{relation}/Italy", relation, "Italy", "Rome", 1, 0.2, "Rome", 0.2)
            for relation in kept
            if step == 8
        ]
        results.write(checkpoint_at(own_run, step), "world_knowledge", Findings(scores=scores, cloze=cloze))
    test = open_view(own_run)
    assert not test.exception and not test.error
    assert bool(test.dataframe) == bool(kept)
    assert bool(test.info) != bool(kept)


def test_relations_can_be_drawn_in_panels(open_view, asked_run):
    """The switch is in the URL; the caption gives the types of LAMA, and there is no picker of relations."""
    test = open_view(asked_run)
    next(switch for switch in test.toggle if switch.key == "pick_panels").set_value(True).run()
    assert not test.exception and not test.error
    assert test.query_params["panels"] in ("on", ["on"])
    assert any("Types as in LAMA" in caption and "n = 3" in caption for caption in captions_of(test))
    assert not test.multiselect


def test_answers_to_lama_variants_are_shown_with_fact(open_view, asked_run):
    """The fact's table has question and answer of the variant; without results a caption gives the command."""
    assert any("--lama-variants PATH --lama PATH" in caption for caption in captions_of(open_view(asked_run)))
    answers = [VariantAnswer("P36/Italy", "P36", "high", "Paris", rank=4, prediction="Paris")]
    scores = [Score("lama_variants", 0.5, 2, "all"), *share_scores(answers)]
    results.note_dataset(asked_run, "world_knowledge", {}, {"templates": {"P36": "The capital of [X] is [Y] ."}})
    results.write(checkpoint_at(asked_run, 16), "lama_variants", Findings(scores=scores, variants=answers))
    test = open_view(asked_run, relation="P36", fact="P36/Italy", step="16")
    assert not test.exception and not test.error
    (rows,) = [frame.value for frame in test.dataframe if "question" in frame.value]
    assert rows[["question", "answer"]].values.tolist() == [["Paris? The capital of Italy is … .", "Paris"]]
