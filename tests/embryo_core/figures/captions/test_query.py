"""The words of the Query page, and its questions as commands."""

import shlex

import pytest

from embryo_core.figures.captions import query as captions


@pytest.mark.parametrize(("word", "mask", "count"), [("", 1, 3), ("Paris", 2, 4), ("Paris", None, 2)])
def test_a_question_is_asked_alike_at_a_terminal(word: str, mask: int | None, count: int) -> None:
    """At the step, at all, the tracked word, the lens; all masks together have neither word nor lens."""
    text = "--x '$(rm)' [MASK] and [MASK] ."
    commands = captions.commands("tiny", 8, f" {text} ", word, mask)
    assert len(commands) == count
    for command in commands:
        python, dash_m, module, *arguments = shlex.split(command)
        assert (python, dash_m, module) == ("python", "-m", "embryo_core") and arguments[-2:] == ["--", text]
        assert ("--mask" in arguments) == (mask == 2 and ("--lens" in arguments or f"--track={word}" in arguments))


def test_captions_say_which_of_several_masks_they_are_about() -> None:
    """All of them together too; where there is one, nothing is added."""
    assert [captions.which(*of) for of in ((2, 3), (None, 3), (1, 1))] == [
        " ([MASK] 2 of 3)", " (all masks together)", ""
    ]  # fmt: skip
    which = captions.which(2, 3)
    written = (
        captions.probability("tiny", 3, which),
        captions.rank(False, 3, which),
        captions.lens("tiny", 3, 3, [], True, 0, which),
    )
    assert all(caption.count("([MASK] 2 of 3)") == 1 for caption in written)


def test_a_question_is_one_line_and_no_markup() -> None:
    """Line breaks become blanks, and marks are shown as they are."""
    assert captions.question("a_b", "x\n\n*y* [MASK]") == r"**a\_b**: x \*y\* \[MASK\]"
