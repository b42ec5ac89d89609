"""Numbers in sentences: one of a thing is singular."""

import numpy as np

from embryo_core.words import headed, listed, point, points, quantity, spread, step_name


def test_one_is_singular():
    """None and several are plural, thousands have their comma."""
    found = [quantity(n, "checkpoint") for n in (0, 1, 2, 1000)]
    assert found == ["0 checkpoints", "1 checkpoint", "2 checkpoints", "1,000 checkpoints"]


def test_a_single_step_is_no_range():
    """The first and the last of several are named, whatever a step counts."""
    assert [spread([5]), spread([0, 3, 1000]), spread([7, 8], "sequence")] == [
        "step 5",
        "steps 0 to 1000",
        "sequences 7 to 8",
    ]


def test_of_many_steps_some_are_named():
    """Up to eight are; of more the first four and the last, and always how many there are."""
    assert listed([8]) == "step 8" and listed([0, 1000]) == "steps 0, 1,000 (2 in all)"
    assert listed(range(8)) == "steps 0, 1, 2, 3, 4, 5, 6, 7 (8 in all)"
    assert listed(range(9)) == "steps 0, 1, 2, 3, …, 8 (9 in all)"


def test_a_step_is_named_by_what_it_counts():
    """Updates are steps; other units follow their number, and one of them is singular."""
    assert [point(step) for step in (0, np.int64(1000))] == ["step 0", "step 1,000"]
    assert [point(step, "words") for step in (0, 1, 1000)] == ["0 words", "1 word", "1,000 words"]
    assert (point("%{x:,}"), point("%{x:,}", "tokens")) == ("step %{x:,}", "%{x:,} tokens")
    assert [points(0, 1000), points(8, 8)] == ["steps 0 to 1,000", "step 8"]
    assert [points(0, 1000, "words"), points(1, 1, "words")] == ["0 to 1,000 words", "1 word"]


def test_numbers_that_are_steps_have_a_head():
    """What they count is in it."""
    assert [headed("peak at"), headed("peak at", "words")] == ["peak at step", "peak at, in words"]
    assert [step_name(), step_name("sequences")] == ["step", "sequences"]
