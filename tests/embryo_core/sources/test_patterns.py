"""Tests of patterns that parse steps, tokens or words from the names of checkpoints."""

import pytest

from embryo_core.errors import RunError
from embryo_core.sources.patterns import Counts, NamePattern, match_names, match_titles, unmatched


@pytest.mark.parametrize(
    ("pattern", "name", "counts"),
    [
        ("step{step}", "step1000", Counts(step=1000)),
        ("step{step}-tokens{tokens}B", "step1000-tokens4B", Counts(step=1000, tokens=4 * 10**9)),
        ("owner/seed_0-step_{step}k", "owner/seed_0-step_20k", Counts(step=20_000)),
        ("owner/seed_0-step_{k}k", "owner/seed_0-step_20k", Counts(step=20_000)),
        ("chck_{words}M", "chck_100M", Counts(words=10**8)),
        ("step-{step}-{tokens}BT", "step-1000-2BT", Counts(step=1000, tokens=2 * 10**9)),
        ("hf_ckpt/{tokens}B", "hf_ckpt/16.78B", Counts(tokens=16_780_000_000)),
        ("x-step-{step}K-{tokens}b", "x-step-50K-105b", Counts(step=50_000, tokens=105 * 10**9)),
        ("{tokens}T", "1.5T", Counts(tokens=1_500 * 10**9)),
        ("{step}k", "1.2345k", None),  # no whole step
        ("{step}", "1.5", None),
        ("{step}Model", "5Model", Counts(step=5)),
        ("ext{step+1000}", "ext5", Counts(step=1005)),
        ("a.{sequences}", "a.7", Counts(sequences=7)),
        ("a.{sequences}", "ab7", None),
        ("step{step}", "step10-final", None),
        ("step{step}", "xstep10", None),
        ("x{step}T", "x9223372T", Counts(step=9_223_372 * 10**12)),
        ("x{step}T", "x9223373T", None),  # more than a manifest can hold
    ],
)
def test_pattern_matches_whole_name(pattern, name, counts):
    """Text outside of a pattern's fields matches literally, including dots and letters that are no unit."""
    assert NamePattern(pattern).match(name) == counts


@pytest.mark.parametrize("text", ["step", "{epoch}", "{step}{step}", "{k}{step}", ""])
def test_invalid_pattern_is_refused(text):
    """The message lists the known fields."""
    with pytest.raises(RunError, match=r"known: {step}, {sequences}, {tokens}, {words}"):
        NamePattern(text)


@pytest.mark.parametrize(
    ("title", "step"),
    [
        ("Training in progress, step 500", 500),
        ("Step 10.", 10),
        ("step 1000, 2 of 3", 1000),
        ("steps 5k", 5000),
        ("Step 1,500", 1500),
        ("step 12,000, loss 2.5", 12_000),
        ("step 1.5k", 1500),
        ("step 1.5", None),
        ("step 1,50", None),
        ("checkpoint 12.5M tokens", None),
        ("Initial commit", None),
    ],
)
def test_title_has_a_whole_step(title, step):
    """A number is read to its end, with commas and decimals."""
    assert match_titles([title], []) == ({title: Counts(step=step)} if step else {})


def test_known_pattern_with_most_matches_is_used():
    """A single name of another form is ignored."""
    names = ["checkpoint-5", "checkpoint-10", "step3", "runs"]
    assert match_names(names, []) == {"checkpoint-5": Counts(step=5), "checkpoint-10": Counts(step=10)}


def test_unmatched_names_with_numbers_are_listed():
    """Such names may belong to another phase; names without a number, of digits only, or with a suffix are left out."""
    names = ["step5", "step10", "ext5", "decay2k", "main", "step5-final", "2024", "1.5T"]
    assert unmatched(names, match_names(names, [])) == ["ext5", "decay2k", "1.5T"]


def test_first_matching_user_pattern_is_used():
    """Each phase of training may have a separate pattern."""
    matches = match_names(["step5", "decay5"], ["step{step}", "decay{step+100}"])
    firsts = {name: counts.first for name, counts in matches.items()}
    assert firsts == {"step5": (5, "updates"), "decay5": (105, "updates")}


def test_checkpoint_is_placed_by_step_or_other_count():
    """The step is used if it is known, otherwise tokens, before words."""
    assert Counts(step=3, tokens=9).first == (3, "updates") and Counts(tokens=9, words=4).first == (9, "tokens")
