"""The Knowledge page in Streamlit's own test runner: with results, without, with broken files, with odd texts."""

from collections.abc import Callable
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from embryo_core import results
from embryo_core.metrics.lama_variants import share_scores
from embryo_core.types import ClozeAnswer, Findings, Run, Score, VariantAnswer
from tests.app.conftest import captions_of
from tests.conftest import at


@pytest.fixture
def look(open_page: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """Open the page on the data root of a run, with parameters in the URL."""
    return partial(open_page, "knowledge")


@pytest.fixture
def asked_run(own_run: Run) -> Run:
    """Return a run that was asked three facts of P36 at its three steps; one subject is markup."""
    answers = {"Italy": ("Rome", "-++"), "<script>alert(1)</script>": ("Bern", "+-+"), "**Peru**": ("Lima", "---")}
    for place, step in enumerate((0, 8, 16)):
        cloze = [
            ClozeAnswer(f"P36/{subject}", "P36", subject, object, 1 + 4 * (marks[place] == "-"), 0.2, "Rome", 0.3)
            for subject, (object, marks) in answers.items()
        ]  # fmt: skip
        right = sum(answer.rank == 1 for answer in cloze)
        scores = [
            Score("world_knowledge", right / 3, 3, "P36"),
            Score("world_knowledge", right / 3, 3, "all"),
            Score("world_knowledge_coverage", 0.6, 5, "P36"),
        ]
        results.write(at(own_run, step), "world_knowledge", Findings(scores=scores, cloze=cloze))
    return own_run


def box(test: AppTest, label: str):
    """Return the select box with this label."""
    return next(box for box in test.selectbox if box.label == label)


def test_the_page_opens_on_evaluated_results(look, tiny_results):
    """Relations, coverage and the facts of one relation are shown; the captions say how many facts there are."""
    test = look(tiny_results)
    assert not test.exception and not test.error
    facts = results.read_cloze(tiny_results)["fact"].nunique()
    assert any(f"Of {facts:,} facts asked" in caption for caption in captions_of(test))
    assert len(test.dataframe) == 3


def test_the_page_says_what_its_precision_is_worth(look, own_run):
    """In one sentence: far below always answering the most frequent object, with and without such names."""
    subjects = ["Rome"] * 20 + [f"town {i}" for i in range(80)]
    cloze = [ClozeAnswer(f"{i}", "P36", name, "Rome", 1 + (i > 0), 0.2, "", 0.3) for i, name in enumerate(subjects)]
    scores = [Score("world_knowledge", 0.01, 100, group) for group in ("P36", "all")]
    scores.append(Score("world_knowledge_coverage", 1.0, 100, "P36"))
    results.write(at(own_run, 8), "world_knowledge", Findings(scores=scores, cloze=cloze))
    test = look(own_run, unnamed="on")
    assert not test.exception
    texts = [text.value.replace("\\", "") for text in test.markdown]
    (said,) = [text for text in texts if "the run's 1.0 %" in text]
    for number in ("100.0 % of 100 facts", "20 facts (20 %)", "0.0 % of 80 correctly", "baseline's 100.0 %"):
        assert number in said
    assert any("Left out: 20 facts" in caption for caption in captions_of(test))


def test_where_the_search_finds_none_no_fact_is_shown(look, asked_run):
    """One sentence takes its place, and the address keeps the fact for when it is found again."""
    test = look(asked_run, fact="P36/Italy", facts="nowhere")
    assert not test.exception and len(test.dataframe) == 2 and "Fact" not in [box.label for box in test.selectbox]
    assert any(info.value.startswith("No fact of this relation is found") for info in test.info)
    assert test.query_params["fact"] == "P36/Italy"
    next(box for box in test.text_input if box.label == "Search").set_value("").run()
    assert box(test, "Fact").value == "P36/Italy" and len(test.dataframe) == 3


def test_the_tables_hold_the_stored_answers(look, asked_run):
    """The relation's counts, the answers at the chosen step, and one fact's answers at every step."""
    test = look(asked_run, step="8", fact="P36/Italy")
    facts, history, relations = (table.value for table in test.dataframe)
    assert relations[["relation", "asked", "all", "learned", "oscillating", "never learned"]].values.tolist() == [
        ["P36", 3, 5, 1, 1, 1]
    ]
    assert facts.set_index("subject")["rank"].to_dict() == {"Italy": 1, "<script>alert(1)</script>": 5, "**Peru**": 5}
    assert list(history["rank"]) == [5, 1, 1]
    assert any("At step 8, 1 of 3 facts" in caption for caption in captions_of(test))


def test_subjects_reach_the_page_only_as_values_of_tables_and_boxes(look, asked_run):
    """No markdown or HTML is made of what the data says."""
    test = look(asked_run, fact="P36/<script>alert(1)</script>")
    assert not test.exception
    written = [element.value for element in (*test.markdown, *test.caption, *test.header, *test.title)]
    assert not any("script" in text or "Peru" in text for text in written)
    assert box(test, "Fact").value == "P36/<script>alert(1)</script>"


def test_facts_are_filtered_by_history_and_words(look, asked_run):
    """The list shows the facts with the chosen history, or those that hold the words; both are in the URL."""
    test = look(asked_run, history="learned")
    assert list(test.dataframe[0].value["subject"]) == ["Italy"]
    box(test, "History").select("any").run()
    test.text_input[0].input("peru").run()
    assert list(test.dataframe[0].value["subject"]) == ["**Peru**"]
    assert test.query_params["facts"] in ("peru", ["peru"])


def test_no_relation_chosen_is_a_message(look, asked_run):
    """With all relations taken away the page asks for one, and the facts stay."""
    test = look(asked_run)
    test.multiselect[0].set_value([]).run()
    assert not test.exception
    assert "Choose at least one relation" in test.info[0].value
    assert len(test.dataframe) == 3


def test_without_answers_the_page_says_what_to_run(look, tiny_run):
    """A run that was not evaluated gives one sentence and one command."""
    test = look(tiny_run)
    assert not test.exception and not test.error
    assert "has not been asked any facts yet" in test.info[0].value
    assert "python -m embryo_core evaluate tiny --metrics world_knowledge" in test.code[0].value


@pytest.mark.parametrize("table", ["scores", "cloze"])
def test_a_broken_file_is_a_message(look, own_run, table):
    """A results file that is not parquet gives one sentence, not a traceback."""
    own_run.results.mkdir(parents=True)
    (own_run.results / f"{table}.parquet").write_bytes(b"not parquet")
    test = look(own_run)
    assert not test.exception
    assert f"{table}.parquet" in test.error[0].value.replace("\\", "")


@pytest.mark.parametrize("kept", [(), ("P36",)], ids=("no facts at all", "facts of one relation of two"))
def test_scores_without_their_facts_do_not_break_the_page(look, own_run: Run, kept: tuple[str, ...]) -> None:
    """Where the store holds scores but no answers to facts, or to some only, the page shows what there is."""
    for step in (0, 8, 16):
        scores = [Score("world_knowledge", 0.5, 2, group) for group in ("P36", "P19", "all")]
        cloze = [
            ClozeAnswer(f"{relation}/Italy", relation, "Italy", "Rome", 1, 0.2, "Rome", 0.2)
            for relation in kept
            if step == 8
        ]
        results.write(at(own_run, step), "world_knowledge", Findings(scores=scores, cloze=cloze))
    test = look(own_run)
    assert not test.exception and not test.error
    assert bool(test.dataframe) == bool(kept)
    assert bool(test.info) != bool(kept)


def test_each_relation_can_have_a_panel_of_its_own(look, asked_run):
    """By a switch, which the link keeps; the caption has the types, and the picker of relations is gone."""
    test = look(asked_run)
    next(switch for switch in test.toggle if switch.key == "pick_panels").set_value(True).run()
    assert not test.exception and not test.error
    assert test.query_params["panels"] in ("on", ["on"])
    assert any("Types as in LAMA" in caption and "n = 3" in caption for caption in captions_of(test))
    assert not test.multiselect


def test_other_questions_about_a_right_fact_are_shown(look, asked_run):
    """Below the precision over all facts, and with the fact itself; without them a line says what to run."""
    assert any("--lama-variants PATH --lama PATH" in caption for caption in captions_of(look(asked_run)))
    answers = [VariantAnswer("P36/Italy", "P36", "high", "Paris", rank=4, prediction="Paris")]
    scores = [Score("lama_variants", 0.5, 2, "all"), *share_scores(answers)]
    results.note_dataset(asked_run, "world_knowledge", {}, {"templates": {"P36": "The capital of [X] is [Y] ."}})
    results.write(at(asked_run, 16), "lama_variants", Findings(scores=scores, variants=answers))
    test = look(asked_run, relation="P36", fact="P36/Italy", step="16")
    assert not test.exception and not test.error
    (rows,) = [frame.value for frame in test.dataframe if "question" in frame.value]
    assert rows[["question", "answer"]].values.tolist() == [["Paris? The capital of Italy is … .", "Paris"]]
