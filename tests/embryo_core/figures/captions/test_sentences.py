"""A caption is parted after its first sentence."""

import pytest

from embryo_core.figures.captions.sentences import split


@pytest.mark.parametrize(
    ("caption", "parts"),
    [
        ("One sentence.", ("One sentence.", None)),
        ("F1, 95 % certain. Click a point. Or two.", ("F1, 95 % certain.", "Click a point. Or two.")),
        ("Above 0.05 at step 0. 4 of 24 heads.", ("Above 0.05 at step 0.", "4 of 24 heads.")),
        (r"Data: my\. File\.txt; n = 3. Line: as measured.", (r"Data: my\. File\.txt; n = 3.", "Line: as measured.")),
        ("", ("", None)),
    ],
)
def test_the_first_sentence_stands_alone(caption: str, parts: tuple) -> None:
    """Numbers, and dots of a text from outside, end none."""
    assert split(caption) == parts
