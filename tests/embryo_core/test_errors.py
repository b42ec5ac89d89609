"""Tests of errors: they form one tree, which their docstring draws, and their messages say what to do."""

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
    """One except clause on the command line catches every error that a user can correct."""
    assert issubclass(error, EmbryoError)


def test_docstring_draws_the_tree_of_errors():
    """Every class of errors.py appears below the class that it derives from."""
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


def test_message_is_one_line_without_control_characters():
    """A message may quote names or files of other people."""
    assert str(EmbryoError("a\x1b[2J 場所 é\n\udcff")) == "a\\x1b[2J 場所 é\\n\\udcff"


def test_unknown_name_suggests_the_nearest_known_one():
    """The message gives the received name, a similar one, all known ones, and what to do next."""
    message = unknown("preset", "albert-smal", ["tiny", "albert-small"], "See python -m pretrain --help.")
    assert message == (
        "Unknown preset 'albert-smal'. Did you mean 'albert-small'? Known: tiny, albert-small. "
        "See python -m pretrain --help."
    )


def test_name_without_similar_one_gets_no_suggestion():
    """No hint is better than a wrong one."""
    assert unknown("run", "zzz", ["albert"]) == "Unknown run 'zzz'. Known: albert."


def test_empty_list_of_known_names_reads_none():
    assert unknown("run", "demo", []) == "Unknown run 'demo'. Known: none."


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Out of range.", "Out of range."), ("One.\nTwo.", "One."), ("\r\n \n Two.\n", "Two.")]
    + [(blank, "ValueError") for blank in ("", " ", "\n", "\n\n ")],
)
def test_first_line_of_exception_is_never_blank(text: str, expected: str):
    """Blank lines are skipped, and an exception without a message is named by its class."""
    assert first_line(ValueError(text)) == expected


@pytest.mark.parametrize(
    ("reason", "status", "said"),
    [
        (UnknownRun("No run."), 2, "Error: No run.\n"),
        (OSError("No space left"), 2, "Error: No space left; what was written is kept, and the same command continues"),
        (KeyboardInterrupt(), 130, "Stopped; all stays.\n"),
    ],
)
def test_failed_command_prints_one_sentence(capsys, reason: BaseException, status: int, said: str):
    """The sentence goes to stderr, and the exit status depends on the exception; both command lines use this code."""

    def command() -> int:
        raise reason

    assert exit_status(command, "all stays") == status
    output = capsys.readouterr()
    assert output.err.startswith(said) and output.err.count("\n") == 1 and not output.out


def test_returned_status_and_other_exceptions_pass_through(capsys):
    """Nothing is printed, and a programming error keeps its traceback."""
    assert exit_status(lambda: 1, "") == 1 and capsys.readouterr().err == ""
    with pytest.raises(ZeroDivisionError):
        exit_status(lambda: 1 // 0, "")


def test_closed_output_ends_a_command_silently():
    """A reader such as `head` closes the output; the status is that of a command ended by SIGPIPE."""
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
