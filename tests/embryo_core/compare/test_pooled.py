"""Seeds of one design are compared as one, with their range."""

import pandas as pd
import pytest

from embryo_core.compare import acquisition, pooled, pooled_differences

STEPS = (0, 8, 16, 24)


def order(run: str, onsets: dict[str, int], rule: str = "half") -> pd.DataFrame:
    """Acquisitions of categories that jump to their last value at a step, and stay at 0 after the last one."""
    rows = [(group, step, float(step >= since), 400) for group, since in onsets.items() for step in STEPS]
    return acquisition(pd.DataFrame(rows, columns=["group", "step", "accuracy", "n"]), rule).assign(run=run)


def test_an_onset_of_seeds_is_their_mean_with_its_range():
    """Cases add up, and what one seed lacks has no onset."""
    other = order("b", {"noun": 24, "verb": 8, "adverb": 99})
    table = pd.concat([order("a", {"noun": 8, "verb": 16, "adverb": 8}), other])
    found = pooled(table, {"a, b": ["a", "b"]}).set_index("group")
    assert found.loc["noun", ["onset", "earliest", "latest", "n"]].tolist() == [16, 8, 24, 800]
    assert found.loc["verb", ["onset", "earliest", "latest"]].tolist() == [12, 8, 16]
    assert found.loc["adverb", ["onset", "place"]].isna().all()


def test_three_seeds_have_a_mean_and_no_median():
    """Of onsets and slopes, of the last values and of differences; the least steps and cases of all pairs."""
    since = {"a": 8, "b": 8, "c": 24}
    table = pd.concat([order(run, {"noun": step}).assign(last=step / 24) for run, step in since.items()])
    found = pooled(table, {"all": ["a", "b", "c"]})
    assert (found["onset"][0], found["last"][0]) == (13, pytest.approx((8 + 8 + 24) / 3 / 24))
    columns = "measure step_first step_second first second difference low high n_first n_second".split()
    rows = [("a", 8, 16, 0.2, 0.2, 0.0, -1, 1, 9, 8), ("a", 16, 8, 0.2, 0.2, 0.0, -1, 1, 7, 6)]
    rows += [("a", 24, 24, 0.2, 0.8, 0.6, -1, 1, 8, 7)]
    (row,) = pooled_differences([pd.DataFrame([one], columns=columns) for one in rows]).to_dict("records")
    assert [row[name] for name in columns[3:6]] == pytest.approx([0.2, 0.4, 0.2])
    assert [row[name] for name in (*columns[1:3], *columns[-2:])] == [8, 8, 7, 6]


def test_a_pooled_order_begins_with_the_first_place():
    """That of the mean, whatever the first seed has first; each row has a number of its own."""
    seeds = {"a": ("verb", "noun", "adverb"), "b": ("noun", "adverb", "verb"), "c": ("adverb", "verb", "noun")}
    table = pd.concat([order(run, dict(zip(names, STEPS[1:], strict=True))) for run, names in seeds.items()])
    found = pooled(table, {"a, b": ["a", "b"], "c": ["c"]})
    assert found["group"].tolist() == ["noun", "verb", "adverb", "adverb", "verb", "noun"]
    assert found["place"].tolist() == [1, 2, 3] * 2 and found.index.tolist() == [*range(6)]


def test_places_are_ranks_of_the_mean_place():
    """Ties of the mean are ties."""
    other = order("b", {"noun": 16, "verb": 8, "adverb": 24})
    table = pd.concat([order("a", {"noun": 8, "verb": 16, "adverb": 24}), other])
    found = pooled(table, {"a, b": ["a", "b"]}).set_index("group")
    assert found["place"].to_dict() == {"noun": 1, "verb": 1, "adverb": 3}


def test_a_design_of_one_run_stays_as_it_is():
    """Slopes included."""
    alone = order("a", {"noun": 8, "verb": 16}, "paper")
    pd.testing.assert_frame_equal(pooled(alone, {"a": ["a"]}), alone)


def test_differences_of_designs_are_means_over_pairs():
    """From the lowest to the highest; what one pair lacks is missing."""

    def pair(second: float, other: float | None) -> pd.DataFrame:
        columns = "measure step_first step_second first second difference low high n_first n_second".split()
        rows = [("a", 8, 8, 0.1, second, second - 0.1, 0.0, 1.0, 50, 50)]
        rows += [("b", *[None] * 9) if other is None else ("b", 8, 8, 0.1, other, other - 0.1, 0.0, 1.0, 50, 50)]
        return pd.DataFrame(rows, columns=columns)

    found = pooled_differences([pair(0.2, 0.3), pair(0.4, None)]).set_index("measure")
    assert found.loc["a", ["difference", "low", "high"]].tolist() == pytest.approx([0.2, 0.1, 0.3])
    assert found.loc["a", "n_first"] == 50 and pd.isna(found.loc["b", "difference"])
