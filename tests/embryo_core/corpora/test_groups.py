"""Groups of words are those that docs/metrics.md states: parts of speech by tag, bands by rank."""

import re
from pathlib import Path

import pytest

from embryo_core.corpora.groups import BANDS, PARTS_OF_SPEECH, SINGLE_TAGS, TAGS, band_of

DOCS = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_parts_of_speech_are_those_of_the_docs():
    """Group by group with all their tags."""
    sentence = re.search(r"\*\*Groups\.\*\* (.*?);", DOCS, re.DOTALL)[1]
    stated = {
        group.strip().lower(): tuple(re.split(r",\s+", tags))
        for group, tags in re.findall(r"([\w ]+)\s\((.*?)\)", sentence, re.DOTALL)
    }
    assert stated == PARTS_OF_SPEECH


def test_every_tag_is_a_group_of_its_own():
    """As many as the docs say, those of the parts of speech among them."""
    assert len(SINGLE_TAGS) == int(re.search(r"(\d+) Penn tags", DOCS)[1])
    assert all(TAGS[tag] == (tag,) for tag in SINGLE_TAGS)
    assert {tag for tags in PARTS_OF_SPEECH.values() for tag in tags} < set(SINGLE_TAGS)


def test_bands_are_those_of_the_docs():
    """Their names give their ranks."""
    assert [name for name in BANDS if f"`{name}`" in DOCS] == list(BANDS)
    assert all(name == f"rank {low}-{high}" for name, (low, high) in BANDS.items())


@pytest.mark.parametrize(("band", "ends"), BANDS.items())
def test_both_ends_of_a_band_are_in_it(band, ends):
    """The ranks before and after are not."""
    low, high = ends
    assert [band_of(rank) for rank in (low - 1, low, high, high + 1)] == [None, band, band, None]


def test_a_word_that_the_corpus_does_not_have_is_in_no_band():
    """It has no rank."""
    assert band_of(None) is None
