"""Tests of the Words figures, with every number recomputed from planted surprisals."""

import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from embryo_core import results, runs
from embryo_core.curves.ages import FEW_OCCURRENCES, NOT_BELOW_CHANCE, find_ages
from embryo_core.errors import FigureError
from embryo_core.figures import word_ages, word_frequency, word_predictors, word_tables, words
from embryo_core.figures.axis import AxisChoice
from embryo_core.measurements import Findings, ListedWordSurprisal
from embryo_core.types import Run
from tests.conftest import checkpoint_at

AXIS = AxisChoice("log", "step", 1)
STEPS = (0, 8, 32, 128, 512, 2048)
N, TOP = 12, 9.0
NAMES = ("the", "of", "and", "dog", "cat", "ball", "run", "see", "flat", "rare")
BIGRAMS = {"the": 2.0, "dog": 5.0, "cat": 6.5, "flat": 3.0, "run": "odd", "see": 4}
COUNTS = {"the": 900, "The": 100, "of": 500, "and": 400, "dog": 20, "cat": 30, "ball": 5, "run": 40, "see": 60}


def occurrences(name: str, shift: float = 0.0) -> np.ndarray:
    """Return planted surprisals [S, n] of a word, as they are stored: earlier words fall at earlier steps."""
    rng = np.random.default_rng([*name.encode()])
    n, middle = (3 if name == "rare" else N), 1.2 + 0.2 * NAMES.index(name) + shift
    falls = 1 / (1 + np.exp(4 * (np.log10(np.maximum(STEPS, 1)) - middle)))[:, None]
    own = TOP + 1 + 0 * falls if name == "flat" else 3 + (TOP - 3) * falls
    return (own + rng.normal(0, 0.4, (len(STEPS), n))).astype(np.float16)


def plant(run: Run, shift: float = 0.0) -> None:
    """Write surprisals of NAMES at STEPS, and the counts of words in the training text."""
    for index, step in enumerate(STEPS):
        surprisals = []
        for i, name in enumerate(NAMES):
            own = occurrences(name, shift)[index]
            category = "function words" if i < 3 else "nouns" if i < 6 else "predicates"
            age = None if name == "see" else 30.0 - i
            mean = float(own.astype(float).mean())
            surprisals.append(
                ListedWordSurprisal(name, len(own), mean, TOP, own.tobytes(), 1 + i % 2, category, age, 3 + i / 2)
            )
        summary = {"left_out": {"never in the text": ["zoo"]}, "note": "10 words", "bigrams": BIGRAMS}
        results.write(
            checkpoint_at(run, step), word_tables.METRIC, Findings(surprisals=surprisals), {"data": "list.csv"}, summary
        )
    lines = [f"{word}\t{count}" for word, count in COUNTS.items()]
    run.frequencies.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def run(own_run: Run) -> Run:
    """Return a run with planted surprisals of ten words and counts of eight."""
    plant(own_run)
    return own_run


@pytest.fixture
def other_run(run: Run) -> Run:
    """Return the same run under another name; its words are learned later."""
    copy = runs.read_run(shutil.copytree(run.path, run.path.with_name("later")))
    plant(copy, 0.3)
    return copy


@pytest.fixture
def second_seed(run: Run) -> Run:
    """Return another seed of the same design, whose words are learned later."""
    copy = runs.read_run(shutil.copytree(run.path, run.path.with_name("seed")))
    copy.config["seed"] = 99
    plant(copy, 0.2)
    return copy


def test_words_have_an_age_or_a_reason(run):
    """Words are sorted by age, with their counts, whatever the case, and the surprisal by these counts."""
    table = word_tables.age_table(run).set_index("word")
    expected = find_ages(STEPS, [occurrences(name).astype(float) for name in NAMES], [TOP] * len(NAMES))
    assert table["age"].reindex(NAMES).to_numpy() == pytest.approx(expected.step, nan_ok=True)
    assert table["earliest"].reindex(NAMES).to_numpy() == pytest.approx(expected.earliest, nan_ok=True)
    assert table["why"].to_dict() == dict.fromkeys(NAMES[:8], "") | {
        "flat": NOT_BELOW_CHANCE,
        "rare": FEW_OCCURRENCES,
        "zoo": "never in the text",
    }
    assert table["age"].dropna().is_monotonic_increasing and table.index[0] == "the"
    assert table["count"]["the"] == 1000 and table["unigram"]["dog"] == pytest.approx(-np.log2(20 / 2055))
    assert table["lowest"]["cat"] == pytest.approx(occurrences("cat").astype(float).mean(axis=1).min(), abs=1e-5)
    own = occurrences("of").astype(float)
    sure = own.mean(axis=1) + 1.96 * own.std(axis=1, ddof=1) / np.sqrt(N) < table["unigram"]["of"]
    assert not sure.any() and pd.isna(table["beyond"]["of"])
    own = occurrences("dog").astype(float)
    assert table["bigram"].dropna().to_dict() == {word: bits for word, bits in BIGRAMS.items() if word != "run"}
    sure = own.mean(axis=1) + 1.96 * own.std(axis=1, ddof=1) / np.sqrt(N) < min(table["unigram"]["dog"], 5.0)
    assert table["beyond"]["dog"] == STEPS[len(sure) - int(np.cumprod(sure[::-1]).sum())]
    assert pd.isna(table["n"]["zoo"]) and pd.isna(table["count"]["zoo"])


def test_word_that_occurs_once_is_never_in_context(own_run):
    """Its mean has no interval, so nothing shows that it is below the other surprisals, however low it is."""
    for step in STEPS:
        once = ListedWordSurprisal("dog", 1, 1.0, TOP, np.float16([1.0]).tobytes(), 1)
        results.write(
            checkpoint_at(own_run, step), word_tables.METRIC, Findings(surprisals=[once]), {"data": "list.csv"}, {}
        )
    own_run.frequencies.write_text("the\t9\ndog\t1\n", encoding="utf-8")
    assert word_tables.age_table(own_run)["beyond"].isna().all()


def test_words_measured_at_some_steps_have_no_age(run):
    """A further word at a further step leaves every word unmeasured at some step, so that no age is left to draw."""
    extra = ListedWordSurprisal("late", 1, 2.0, TOP, np.float16([2]).tobytes(), 1.0)
    results.write(checkpoint_at(run, 4096), word_tables.METRIC, Findings(surprisals=[extra]), {"data": "list.csv"})
    table = word_tables.age_table(run)
    assert set(table["why"]) == {word_tables.PARTLY_MEASURED, "never in the text"}
    with pytest.raises(FigureError, match="No word"):
        word_ages.ages([run], AXIS)


def test_curve_of_a_word_has_its_mean_and_interval(run, other_run):
    """The plot also has the sigmoid and the age, and the surprisal by frequency, of the first run."""
    figure = words.curve([run, other_run], AXIS, "dog")
    own = figure.table[figure.table["run"] == run.name]
    star, own = own[own["surprisal"].isna()], own[own["surprisal"].notna()]
    each = occurrences("dog").astype(float)
    assert own["surprisal"].to_numpy() == pytest.approx(each.mean(axis=1), abs=1e-5)
    reach = 1.96 * each.std(axis=1, ddof=1) / np.sqrt(N)
    assert (own["high"] - own["surprisal"]).to_numpy() == pytest.approx(reach, rel=1e-3)
    drawn = {trace.name: (list(trace.x), list(trace.y)) for trace in figure.plot.data}
    assert drawn["age"] == ([*star["step"]], [*star["sigmoid"]])
    fitted = own.dropna(subset="sigmoid")
    assert drawn["sigmoid"] == ([*fitted["step"]], [*fitted["sigmoid"]])
    assert set(drawn["by frequency"][1]) == set(own["unigram"])
    assert "no age" in str(words.curve([run], AXIS, "flat").caption)
    with pytest.raises(FigureError):
        words.curve([run], AXIS, "zoo")


def test_acquired_words_are_counted_by_step(run):
    """The share is of all words that were measured, with an age or without."""
    table, ages = word_tables.acquired_table(run), word_tables.age_table(run)
    whole = table[table["group"] == "all"].set_index("step")
    assert set(whole["n"]) == {10}
    for step in STEPS:
        assert whole["value"][step] == pytest.approx((ages["age"] <= step).sum() / 10)
    caption = str(words.acquired([run], AXIS).caption)
    assert "3 words" in caption and "1 never in the text" in caption


def test_listed_ages_have_two_digits(run):
    """Rounding moves an age by less than 5 % and half a step."""
    table = word_tables.age_table(run)
    every = word_tables.list_words(table)
    assert len(every) == 11
    for name in ("age", "earliest", "latest"):
        exact = table[name].where(np.isfinite(table[name]))
        assert every[name].isna().tolist() == exact.isna().tolist()
        assert (every[name].dropna() - exact.dropna()).abs().lt(0.05 * exact.dropna() + 0.5).all()
        assert all(len(str(age).rstrip("0")) <= 2 for age in every[name].dropna())
    assert "8 of 11 words have an age" in str(words.describe_words(table, table))


def test_default_word_has_the_surest_age_of_the_middle_third():
    """An age with an open end is not sure; without ages the default is the first word that was measured."""
    ages = {"age": [10, 20, 30, 40, 50, 60], "earliest": [9, 19, 5, 39, 49, 59], "latest": [11, 21, np.inf, 44, 51, 61]}
    table = pd.DataFrame({"word": list("abcdef"), "n": 1.0, **ages})
    assert words.default_word(table) == "d"
    assert words.default_word(table[:1]) == "a"
    assert words.default_word(table.assign(age=np.nan)) == "a"
    assert words.default_word(table.assign(age=np.nan, n=np.nan)) is None


def test_ages_of_two_runs_share_the_rows_of_the_first(run, other_run):
    """The caption has Spearman's correlation over the words with an age in both runs."""
    figure = word_ages.ages([run, other_run], AXIS)
    ages = [word_tables.age_table(r).dropna(subset="age").set_index("word")["age"] for r in (run, other_run)]
    both = pd.concat(ages, axis=1, keys=["first", "second"]).dropna()
    rho = spearmanr(both["first"], both["second"]).statistic
    assert f"rho = {rho:.2f}" in str(figure.caption) and f"{len(both)} words" in str(figure.caption)
    points = [point for trace in figure.plot.data if trace.customdata is not None for point in trace.customdata]
    assert len(points) == sum(map(len, ages)) - (~ages[1].index.isin(ages[0].index)).sum()


def test_correlations_with_children_are_spearmans(run):
    """Categories have a correlation only with at least four words."""
    table = word_tables.age_table(run).dropna(subset=["age", "children"])
    children = word_predictors.children_table(run).set_index("group")
    assert children["rho"]["all"] == pytest.approx(spearmanr(table["age"], table["children"]).statistic)
    assert children["n"].to_dict() == {"all": 7, "function words": 3, "nouns": 3, "predicates": 1}
    assert np.isnan(children["rho"]["nouns"])
    assert "reverse" in word_predictors.children([run], AXIS).caption.summary


def test_predictors_are_coefficients_of_log_ages(run):
    """Numbers are standardised, function words are the reference category, and words without a count are left out."""
    table = word_tables.age_table(run).dropna(subset=["age", "count"])
    numbers = [np.log10(table["count"]), table["pieces"], table["concreteness"]]
    design = [np.ones(len(table)), *((own - own.mean()) / own.std(ddof=0) for own in numbers)]
    design += [(table["category"] == name).astype(float) for name in ("nouns", "predicates")]
    expected = np.linalg.lstsq(np.array(design, float).T, np.log10(table["age"].astype(float)), rcond=None)[0]
    coefficients = word_predictors.predictor_table(run).set_index("predictor")["value"]
    order = ["log frequency", "pieces", "concreteness", "nouns, not function words", "predicates, not function words"]
    assert coefficients[order].tolist() == pytest.approx(expected[1:].tolist(), abs=1e-6)
    assert set(word_predictors.predictors([run], AXIS).table["n"]) == {8}


def test_seeds_are_one_mark_with_mean_and_standard_error(run, second_seed, other_run):
    """This holds for children and for predictors; beside them, a run without another seed is named in the caption."""
    predicted, beside = (
        word_predictors.predictors([run, second_seed], AXIS),
        word_predictors.children([run, second_seed], AXIS),
    )
    for figure, table, key, value in (
        (predicted, word_predictors.predictor_table, "predictor", "value"),
        (beside, word_predictors.children_table, "group", "rho"),
    ):
        each = [table(r).set_index(key) for r in (run, second_seed)]
        both = pd.concat([own[value] for own in each], axis=1).dropna()
        rows = figure.table.set_index(key)
        assert rows["run"].nunique() == 1 and set(rows["seeds"]) == {2}
        assert rows[value][both.index].tolist() == pytest.approx(both.mean(axis=1).tolist())
        error = both.std(axis=1, ddof=1) / np.sqrt(2)
        assert (rows["high"] - rows[value])[both.index].tolist() == pytest.approx(error.tolist())
        assert rows["n"][both.index].tolist() == sum(own["n"][both.index] for own in each).tolist()
        assert "mean of 2 seeds" in str(figure.caption) and "single seed" not in str(figure.caption)
    alone = word_predictors.predictors([run, second_seed, other_run], AXIS)
    assert alone.table["run"].nunique() == 2 and "single seed" in str(alone.caption)


def test_distances_are_from_unigram_surprisals(run):
    """They are means over the words that were counted; without counts there is no figure."""
    table = word_frequency.distance_table(run)
    whole = table[table["group"] == "all"].set_index("step")
    names = [name for name in NAMES if name in COUNTS]
    unigram = word_tables.age_table(run).set_index("word")["unigram"]
    for i, step in enumerate(STEPS):
        each = [occurrences(name)[i].astype(float) for name in names]
        distances = [abs(own.mean() - unigram[name]) for name, own in zip(names, each, strict=True)]
        sure = [own.mean() + 1.96 * own.std(ddof=1) / np.sqrt(N) < unigram[name] for name, own in zip(names, each)]
        assert whole["value"][step] == pytest.approx(np.mean(distances), abs=1e-4)
        assert (whole["below"][step], whole["n"][step]) == (pytest.approx(np.mean(sure)), 8)
    run.frequencies.unlink()
    results.compact(run)
    with pytest.raises(FigureError, match="frequency"):
        word_frequency.distance([run], AXIS)


def test_context_counts_from_the_step_from_which_it_holds(run, monkeypatch):
    """Half of the words are less surprising only in between."""
    curve = {"value": 1.0, "low": 0.5, "high": 1.5, "n": 8, "below": [0.0, 0.6, 0.4]}
    monkeypatch.setattr(
        word_frequency, "distance_table", lambda _: pd.DataFrame({"group": "all", "step": STEPS[:3]} | curve)
    )
    assert "at no step, context" in str(word_frequency.distance([run], AXIS).caption)


def test_axis_of_ages_covers_every_run(run, other_run, monkeypatch):
    """The words of the second run are three times as old."""
    axis, ends = AxisChoice("linear"), ["age", "earliest", "latest"]
    tables = word_ages._read_tables([run, other_run], axis)
    tables[other_run.name] = tables[run.name].assign(**{end: 3 * tables[run.name][end] for end in ends})
    monkeypatch.setattr(word_ages, "_read_tables", lambda *_: tables)
    figure = word_ages.ages([run, other_run], axis)
    assert figure.plot.layout.xaxis.range[1] >= 3 * tables[run.name]["age"].max()


def test_unigrams_are_shares_of_all_counted_words(run):
    """Words that are too rare for frequencies.tsv count too, if run.json has the number of all words."""
    table = word_tables.age_table(run).set_index("word")
    runs.record_counted_words(run, 2 * sum(COUNTS.values()))
    results.compact(run)
    more = word_tables.age_table(runs.read_run(run.path)).set_index("word")
    assert table["unigram"]["dog"] == pytest.approx(-np.log2(COUNTS["dog"] / sum(COUNTS.values())))
    assert (more["unigram"] - table["unigram"]).dropna().tolist() == pytest.approx([1] * table["count"].count())


def test_run_without_words_is_named_as_missing(run):
    bare = runs.read_run(shutil.copytree(run.path, run.path.with_name("bare")))
    for make in (word_frequency.distance, word_frequency.nearest_distributions, words.acquired, words.curve):
        figure = make([run, bare], AXIS, *(["dog"] if make is words.curve else []))
        assert figure.missing == ("bare",) and set(figure.table["run"]) == {run.name}


def test_phases_of_words_are_the_nearest_of_three_or_context(run):
    """Context means significantly below chance, unigram and bigram; only words with both frequencies count."""
    table = word_frequency.nearest_table(run)
    ages, names = word_tables.age_table(run).set_index("word"), ("the", "dog", "cat", "see")
    assert set(table["n"]) == {len(names)}
    for i, step in enumerate(STEPS):
        phase_names = []
        for name in names:
            own, known = occurrences(name)[i].astype(float), ages.loc[name, ["unigram", "bigram"]].astype(float)
            distances = {"chance": abs(own.mean() - TOP), **(known - own.mean()).abs()}
            sure = own.mean() + 1.96 * own.std(ddof=1) / np.sqrt(N) < min(TOP, known.min())
            phase_names.append("context" if sure else min(distances, key=distances.get))
        shares = table[table["step"] == step].set_index("group")["value"]
        assert {name: shares[name] for name in word_frequency.NEAREST} == {
            name: phase_names.count(name) / len(names) for name in word_frequency.NEAREST
        }
    run.frequencies.unlink()
    results.note_dataset(run, word_tables.METRIC, {"data": "list.csv"}, {"bigrams": BIGRAMS, "unigrams": {"dog": 7.5}})
    results.compact(run)
    assert word_tables.age_table(run)["unigram"].dropna().tolist() == [7.5]
    assert set(word_frequency.nearest_table(run)["n"]) == {1}
    assert "measured text" in word_frequency.nearest_distributions([run], AXIS).caption.details
    assert "at step 0" in word_frequency.nearest_distributions([run], AXIS).caption.summary
    results.note_dataset(run, word_tables.METRIC, {"data": "list.csv"}, {"note": "10 words"})
    results.compact(run)
    with pytest.raises(FigureError, match="--overwrite"):
        word_frequency.nearest_distributions([run], AXIS)
