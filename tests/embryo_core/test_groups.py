"""Tests that groups of words are those of docs/metrics.md: parts of speech by tag, bands by frequency rank."""

import re
from pathlib import Path

import pytest

from embryo_core.groups import BANDS, PARTS_OF_SPEECH, SINGLE_TAGS, TAGS, band_of

DOCS = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_parts_of_speech_match_the_docs():
    """Every group is compared with all of its tags."""
    sentence = re.search(r"\*\*Groups\.\*\* (.*?);", DOCS, re.DOTALL)[1]
    stated = {
        group.strip().lower(): tuple(re.split(r",\s+", tags))
        for group, tags in re.findall(r"([\w ]+)\s\((.*?)\)", sentence, re.DOTALL)
    }
    assert stated == PARTS_OF_SPEECH


def test_every_single_tag_is_a_group():
    """The groups are as numerous as docs/metrics.md states and include the tags of all parts of speech."""
    assert len(SINGLE_TAGS) == int(re.search(r"(\d+) Penn tags", DOCS)[1])
    assert all(TAGS[tag] == (tag,) for tag in SINGLE_TAGS)
    assert {tag for tags in PARTS_OF_SPEECH.values() for tag in tags} < set(SINGLE_TAGS)


def test_bands_match_the_docs():
    """The name of a band gives its ranks."""
    assert [name for name in BANDS if f"`{name}`" in DOCS] == list(BANDS)
    assert all(name == f"rank {low}-{high}" for name, (low, high) in BANDS.items())


@pytest.mark.parametrize(("band", "ends"), BANDS.items())
def test_both_ends_of_a_band_are_inclusive(band, ends):
    """The ranks just outside the ends belong to no band."""
    low, high = ends
    assert [band_of(rank) for rank in (low - 1, low, high, high + 1)] == [None, band, band, None]


def test_word_without_a_rank_is_in_no_band():
    """A word that the corpus does not contain has no rank."""
    assert band_of(None) is None
