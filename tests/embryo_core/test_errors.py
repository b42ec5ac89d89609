"""The errors: one tree, drawn in the docstring, and messages that say what to do."""

import inspect
import re
import subprocess
import sys

import pytest

from embryo_core import errors
from embryo_core.errors import EmbryoError, UnknownRun, exit_status, first_line, unknown

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_error_is_an_embryo_error(error: type[Exception]):
    """One except clause at the command line catches all that a user can mend."""
    assert issubclass(error, EmbryoError)


def test_the_drawn_tree_is_the_tree():
    """The docstring of errors.py draws every class under the class that it derives from."""
    drawn = {}
    parents = {}
    for line in errors.__doc__.splitlines():
        if match := re.match(r"([│ ]*)(?:[├└]── )?(\w+Error|[A-Z]\w+)\b", line):
            depth = 0 if line.startswith("EmbryoError") else len(match[1]) // 4 + 1
            if match[2] in {c.__name__ for c in CLASSES}:
                drawn[match[2]] = parents.get(depth - 1)
                parents[depth] = match[2]
    actual = {c.__name__: None if c is EmbryoError else c.__base__.__name__ for c in CLASSES}
    assert drawn == actual


def test_a_message_is_one_line_without_control_characters():
    """It may quote the name or the file of a stranger."""
    assert str(EmbryoError("a\x1b[2J 場所 é\n\udcff")) == "a\\x1b[2J 場所 é\\n\\udcff"


def test_an_unknown_name_is_answered_with_the_nearest_known_one():
    """The message holds what was received, what is near, what exists, and what to do next."""
    message = unknown("preset", "albert-smal", ["tiny", "albert-small"], "See python -m pretrain --help.")
    assert message == (
        "Unknown preset 'albert-smal'. Did you mean 'albert-small'? Known: tiny, albert-small. "
        "See python -m pretrain --help."
    )


def test_a_name_that_is_near_nothing_gets_no_suggestion():
    """No hint is better than a wrong one."""
    assert unknown("run", "zzz", ["albert"]) == "Unknown run 'zzz'. Known: albert."


def test_nothing_known_is_said_plainly():
    """An empty list of names reads as none."""
    assert unknown("run", "demo", []) == "Unknown run 'demo'. Known: none."


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Out of range.", "Out of range."), ("One.\nTwo.", "One."), ("\r\n \n Two.\n", "Two.")]
    + [(blank, "ValueError") for blank in ("", " ", "\n", "\n\n ")],
)
def test_the_first_line_of_an_exception_says_something(text: str, expected: str):
    """Blank lines are passed over, and an exception without words is named by its class."""
    assert first_line(ValueError(text)) == expected


@pytest.mark.parametrize(
    ("reason", "status", "said"),
    [
        (UnknownRun("No run."), 2, "Error: No run.\n"),
        (OSError("No space left"), 2, "Error: No space left; what was written stays, and the same command continues"),
        (KeyboardInterrupt(), 130, "Stopped; all stays.\n"),
    ],
)
def test_what_ends_a_command_is_one_sentence(capsys, reason: BaseException, status: int, said: str):
    """On stderr, with its exit status; both command lines say it alike."""

    def command() -> int:
        raise reason

    assert exit_status(command, "all stays") == status
    output = capsys.readouterr()
    assert output.err.startswith(said) and output.err.count("\n") == 1 and not output.out


def test_a_command_that_ends_by_itself_has_its_own_status(capsys):
    """Nothing is added, and an error of our own making keeps its traceback."""
    assert exit_status(lambda: 1, "") == 1 and capsys.readouterr().err == ""
    with pytest.raises(ZeroDivisionError):
        exit_status(lambda: 1 // 0, "")


def test_a_reader_that_closes_the_output_ends_a_command_quietly():
    """As `head` does: no message, and the status of a command that SIGPIPE ended."""
    code = (
        "import sys; from embryo_core.errors import exit_status\n"
        "def command():\n"
        "    while True: print('x' * 10_000)\n"
        "sys.exit(exit_status(command, ''))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == ("", errors.OUTPUT_CLOSED)
