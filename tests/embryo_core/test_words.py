"""Tests of numbers in sentences, with singular and plural."""

import numpy as np
import pandas as pd

from embryo_core.types import StepUnit
from embryo_core.words import (
    count_range,
    join_steps,
    list_steps,
    name_step,
    name_step_range,
    percent,
    quantity,
    step_heading,
    step_unit_name,
)


def test_one_is_singular():
    """Zero and several are plural; thousands have a comma."""
    counts = [quantity(n, "checkpoint") for n in (0, 1, 2, 1000)]
    assert counts == ["0 checkpoints", "1 checkpoint", "2 checkpoints", "1,000 checkpoints"]


def test_count_range_is_one_number_or_a_span():
    """Numbers have commas, and missing values are left out."""
    assert [count_range(pd.Series(n)) for n in ([1000, 1000], [8, 1000], [8.0, None])] == ["1,000", "8 to 1,000", "8"]


def test_percentage_has_a_space():
    """Findings write "95 % interval"; the number of digits can be chosen."""
    assert [percent(0.28349), percent(1), percent(0.125, 0)] == ["28.3 %", "100.0 %", "12 %"]


def test_long_list_of_steps_is_shortened():
    """Up to eight steps are named; of more, the first four and the last, with the total count."""
    assert (
        list_steps([8], StepUnit.UPDATES) == "step 8"
        and list_steps([0, 1000], StepUnit.UPDATES) == "steps 0, 1,000 (2 in all)"
    )
    assert list_steps(range(8), StepUnit.UPDATES) == "steps 0, 1, 2, 3, 4, 5, 6, 7 (8 in all)"
    assert list_steps(range(9), StepUnit.UPDATES) == "steps 0, 1, 2, 3, …, 8 (9 in all)"
    assert [list_steps([1000], "words"), list_steps([0, 1000], "words")] == ["1,000 words", "0, 1,000 words (2 in all)"]


def test_joined_steps_are_all_named():
    """The words depend on the unit of the steps."""
    assert [join_steps([8], StepUnit.UPDATES), join_steps([0, 1000], StepUnit.UPDATES)] == [
        "step 8",
        "steps 0 and 1,000",
    ]
    assert join_steps([0, 8, 1000], StepUnit.UPDATES) == "steps 0, 8 and 1,000"
    assert [join_steps([1], "words"), join_steps([0, 1000], "words")] == ["1 word", "0 and 1,000 words"]


def test_steps_are_named_by_their_unit():
    """Updates are called steps; other units follow the number, in the singular after 1."""
    assert [name_step(step, StepUnit.UPDATES) for step in (0, np.int64(1000))] == ["step 0", "step 1,000"]
    assert [name_step(step, "words") for step in (0, 1, 1000)] == ["0 words", "1 word", "1,000 words"]
    assert (name_step("%{x:,}", StepUnit.UPDATES), name_step("%{x:,}", "tokens")) == ("step %{x:,}", "%{x:,} tokens")
    assert [name_step_range(0, 1000, StepUnit.UPDATES), name_step_range(8, 8, StepUnit.UPDATES)] == [
        "steps 0 to 1,000",
        "step 8",
    ]
    assert [name_step_range(0, 1000, "words"), name_step_range(1, 1, "words")] == ["0 to 1,000 words", "1 word"]


def test_heading_of_steps_names_their_unit():
    assert [step_heading("peak at", StepUnit.UPDATES), step_heading("peak at", "words")] == [
        "peak at step",
        "peak at, in words",
    ]
    assert [step_unit_name(StepUnit.UPDATES), step_unit_name("sequences")] == ["step", "sequences"]
