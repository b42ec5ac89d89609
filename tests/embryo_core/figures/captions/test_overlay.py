"""What a caption says of runs beside each other."""

from embryo_core.figures.axis import StepAxis
from embryo_core.figures.captions import overlay as captions
from embryo_core.types import Change, StepUnit


def test_vertical_lines_are_told_for_each_run() -> None:
    """A run in which nothing changed is left out; names are never read as markup."""
    own = (Change(4, "corpus: a.txt"), Change(1200, "learning rate falls"))
    axes = {
        "one_": StepAxis("log", own, step_unit=StepUnit.UPDATES),
        "two": StepAxis("log", step_unit=StepUnit.UPDATES),
    }
    said = captions.changes(axes).replace("\\", "")
    assert said == " Vertical lines: one_ from step 4: corpus: a.txt, from step 1,200: learning rate falls."
    assert "one\\_" in captions.changes(axes)
