"""Captions of the Knowledge page."""

import pandas as pd
import pytest

from embryo_core.figures.captions import knowledge as captions


@pytest.mark.parametrize(
    ("subjects", "told"),
    [(["Paris Metro", "Rome"], "is 1 fact whose"), (["Paris Metro", "Paris Opera"], "are 2 facts whose")],
)
def test_facts_that_are_left_out_are_counted(subjects: list[str], told: str) -> None:
    """One of them is singular; nothing is said where all are shown."""
    facts = pd.DataFrame({"subject": subjects, "object": "Paris"})
    assert f" Left out {told} subject's name contains the object." in captions.precision("a note", facts, True)
    assert "Left out" not in captions.precision("a note", facts, False)
