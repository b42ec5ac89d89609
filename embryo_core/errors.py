"""The errors that Embryo raises; a message says what was received, what is valid, and what to do next.

EmbryoError
├── RunError                a run folder cannot be used
│   ├── UnknownRun          no run of that name
│   ├── BrokenRun           run.json, log, state or tokenizer missing or unreadable
│   │   └── BrokenTokenizer the tokenizer of foreign checkpoints cannot be read
│   ├── BrokenTrainerState  trainer_state.json of transformers' Trainer cannot be read
│   └── BusyRun             another process is pretraining it
├── CheckpointError         one step of a run cannot be used
│   ├── UnknownStep         the run has no checkpoint at that step
│   ├── MissingWeights      the checkpoint's weights were removed, or cannot be fetched from the Hub
│   └── BrokenCheckpoint    files missing, truncated, or not the ones in the manifest
│       └── BrokenUserList  a list of the user, such as that of added runs, cannot be read
├── MissingCapability       the model has no such output (masked words, attentions, ...)
├── TokenizerMismatch       the tokenizer is not the one that the run was pretrained with
├── CorpusError             a text, treebank or set of facts cannot be read
├── UnknownMetric           no metric of that name, or no such group, step or task in its results
├── UnknownPreset           no pretraining preset of that name
├── ConfigError             a setting, option, device or variable cannot be used, or contradicts another
├── QueryError              a text cannot be queried (no [MASK], too long, ...)
│   └── TooCostly           a question costs more than the budget of a hosted demo
├── FigureError             a figure has nothing to draw, not the received choice, or cannot be written to a file
├── SiteError               a static site has nothing to show, or cannot be written
└── ResultsError            a result may not be written, or cannot be read
    ├── BrokenExamples      the example questions of a run cannot be read
    └── DatasetMismatch     stored results are of data that differ from those received
"""

import os
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches

INTERRUPTED = 128 + 2  # a shell's exit status for SIGINT
OUTPUT_CLOSED = 128 + 13  # a shell's exit status for SIGPIPE


class EmbryoError(Exception):
    """Base of all errors that a user can correct; the command line prints the message without a traceback."""

    def __str__(self) -> str:
        """Return the message with control characters escaped, since it may quote an untrusted file."""
        return printable(super().__str__())


class RunError(EmbryoError):
    """A run folder cannot be used."""


class UnknownRun(RunError):
    """There is no run of that name."""


class BrokenRun(RunError):
    """The run.json, log, state or tokenizer of a run is missing or unreadable."""


class BrokenTokenizer(BrokenRun):
    """The tokenizer of foreign checkpoints cannot be read."""


class BrokenTrainerState(RunError):
    """The trainer_state.json of a checkpoint cannot be read; the checkpoint can be used without it."""


class BusyRun(RunError):
    """Another process is pretraining the run."""


class CheckpointError(EmbryoError):
    """One step of a run cannot be used."""


class UnknownStep(CheckpointError):
    """The run has no checkpoint at that step."""


class MissingWeights(CheckpointError):
    """The weights of a checkpoint were removed to save space, or cannot be fetched from the Hub; its results remain."""


class BrokenCheckpoint(CheckpointError):
    """Files of a checkpoint are missing, truncated, or not the ones named in its manifest."""


class BrokenUserList(BrokenCheckpoint):
    """A list of the user cannot be read: of added runs, trusted files, or folders of data.

    It is a BrokenCheckpoint, since weights cannot be read without the lists that say where they are and are trusted.
    """


class MissingCapability(EmbryoError):
    """The model has no such output (masked words, attentions, ...)."""


class TokenizerMismatch(EmbryoError):
    """The tokenizer is not the one that the run was pretrained with."""


class CorpusError(EmbryoError):
    """A text, treebank or set of facts cannot be read."""


class UnknownMetric(EmbryoError):
    """There is no metric of that name, or its results have no such group, step or task."""


class UnknownPreset(EmbryoError):
    """There is no pretraining preset of that name."""


class ConfigError(EmbryoError):
    """A setting, option, device or environment variable cannot be used, or contradicts another or the run on disk."""


class QueryError(EmbryoError):
    """A text cannot be queried."""


class TooCostly(QueryError):
    """A question costs more than this server allows; `command` is the shell command that answers it elsewhere."""

    def __init__(self, message: str, command: str):
        super().__init__(message)
        self.command = command


class FigureError(EmbryoError):
    """A figure has no data to draw, does not have the choice received, or cannot be written to a file."""


class SiteError(EmbryoError):
    """A static site has no content, or its folder may not or cannot be replaced."""


class ResultsError(EmbryoError):
    """A result must not be written, or cannot be read."""


class BrokenExamples(ResultsError):
    """The example questions of a run cannot be read."""


class DatasetMismatch(ResultsError):
    """Stored results were computed from data that differ from those received; the two are never mixed."""


def unknown(kind: str, received: str, known: Iterable[str], then: str = "") -> str:
    """Return the message for an unknown name, with the nearest known name, all known names, and the sentence `then`.

    >>> unknown("metric", "pos", ["mask_prediction", "pos_probe"])
    "Unknown metric 'pos'. Did you mean 'pos_probe'? Known: mask_prediction, pos_probe."
    """
    names = list(known)
    closest = get_close_matches(received, names, n=1, cutoff=0.4)
    hint = f" Did you mean '{closest[0]}'?" if closest else ""
    return f"Unknown {kind} '{received}'.{hint} Known: {', '.join(names) or 'none'}.{' ' + then if then else ''}"


def file_reason(reason: OSError | UnicodeDecodeError) -> str:
    """Return the reason why a text file could not be read, without its path."""
    return str(reason.strerror) if isinstance(reason, OSError) else "it is not UTF-8"


def printable(text: str, kept: str = "") -> str:
    """Return a text with control characters escaped, except the characters in `kept`."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


def first_line(reason: BaseException) -> str:
    """Return the first non-blank line of an exception's message, or the name of its class.

    >>> first_line(ValueError("\\nOut of range.\\nTraceback ..."))
    'Out of range.'
    """
    lines = (line.strip() for line in str(reason).splitlines())
    return next(filter(None, lines), type(reason).__name__)


def exit_status(command: Callable[[], int], stopped: str) -> int:
    """Run a command and return its exit status, or 2 on an error, 130 on Ctrl-C, 141 if the output was closed.

    Errors are printed to stderr as one sentence; on Ctrl-C the sentence ends with `stopped`, which says what remains.
    """
    try:
        return command()
    except EmbryoError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the output, such as head, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python's last flush would fail again
        return OUTPUT_CLOSED
    except OSError as error:  # such as a full disk, or a folder without write permission
        print(f"Error: {error}; what was written is kept, and the same command continues from there.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"Stopped; {stopped}.", file=sys.stderr)
        return INTERRUPTED
