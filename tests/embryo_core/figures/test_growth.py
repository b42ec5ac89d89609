"""Tests of what the Overview plays: an example, curves, sizes and findings, chosen by stored results."""

from dataclasses import replace

from embryo_core import results, runs
from embryo_core.figures import growth
from embryo_core.findings import judge
from embryo_core.runs.schema import BestAnswers, ExampleQuestion
from embryo_core.types import Run
from tests.demo import FOLDER


def example(since: int | None, *leaders: str, last: float = 0.5) -> ExampleQuestion:
    """Return an example whose best answers are `leaders`, one for each step."""
    shares = [*(0.1 for _ in leaders[:-1]), last]
    rows = [BestAnswers(step, {word: share} if word else {}) for step, (word, share) in enumerate(zip(leaders, shares))]
    return ExampleQuestion(" ".join(leaders), leaders[-1], since, rows)


def test_best_example_changes_often_and_ends_confident() -> None:
    """Only learned examples count; one of an older file has no answers and is not chosen."""
    candidates = [example(1, "a", "b"), example(2, "", "a", "b", "c"), example(None, *"abcdefg"), example(1, "a")]
    assert growth.best_example(candidates) is candidates[1]
    assert growth.best_example([example(1, *"abcd", last=0.01), candidates[0]]) is candidates[0]
    assert growth.best_example([ExampleQuestion("a", "b", 3)]) is None


def test_curves_are_those_with_the_widest_range(tiny_results: Run) -> None:
    """The expected ranges are computed from the stored scores."""
    scores = results.read_scores(tiny_results, "mask_prediction")
    table = growth.changed_most(tiny_results)
    rows = scores[scores["group"].isin(growth.style.PARTS_OF_SPEECH)].groupby("group")["value"]
    widest = (rows.max() - rows.min()).sort_values(ascending=False)
    assert set(table["group"]) <= set(widest[widest >= widest.iloc[growth.CURVE_COUNT - 1]].index)
    assert table["group"].nunique() == growth.CURVE_COUNT


def test_description_has_family_steps_and_sizes(tiny_results: Run) -> None:
    """What the run has learned, here facts, is read from its scores."""
    watch, model = growth.introduce_run(tiny_results, 16, 4096)
    assert "ALBERT" in watch and "16 training steps" in watch
    assert "parameters, 4,096 tokens" in model and model.endswith("facts.")


def test_demo_has_answers_for_its_best_example() -> None:
    """It was asked at each checkpoint with weights; words have at least 0.01, and in the second half there are some."""
    run = runs.read_run(FOLDER / "runs" / "albert-reference")
    best = growth.best_example(results.read_example_questions(run))
    steps = {checkpoint.step for checkpoint in runs.loadable_checkpoints(run)}
    assert steps <= {answers.step for answers in best.answers}
    assert all(answers.words for answers in best.answers if answers.step >= max(steps) / 2)
    assert min(share for answers in best.answers for share in answers.words.values()) >= 0.01


def test_findings_with_a_verdict_come_first(tiny_results: Run) -> None:
    """They are in the order of LEADING; findings that cannot be judged come after them."""
    judged = judge(tiny_results, tuple(growth.LEADING))
    leading = growth.leading([replace(one, verdict="undecided" if i < 2 else "partly") for i, one in enumerate(judged)])
    rest = [judgement.finding.name for judgement in judged[2:]]
    names = [name for name in growth.LEADING if name in rest]
    assert [judgement.finding.name for judgement in leading] == [
        *names,
        *(judgement.finding.name for judgement in judged[:2]),
    ][:3]
