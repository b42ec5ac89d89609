"""Every error that Embryo raises on purpose; each message says what was received, what exists, and what to run next.

EmbryoError
├── RunError                a run folder
│   ├── UnknownRun          no run of that name
│   ├── BrokenRun           run.json, log, state or tokenizer missing or unreadable
│   │   └── BrokenTokenizer the tokenizer that came with foreign checkpoints cannot be read
│   ├── BrokenTrainerState  what transformers' Trainer noted down beside a checkpoint cannot be read
│   └── BusyRun             another process is pretraining it
├── CheckpointError         one step of a run
│   ├── UnknownStep         the run has no checkpoint at that step
│   ├── MissingWeights      the checkpoint has lost its weights, and kept its results
│   └── BrokenCheckpoint    files missing, truncated, or not the ones in the manifest
│       └── BrokenList      the user's own list of added runs, which says where weights may be, cannot be read
├── MissingCapability       a model was asked for what it does not give (masked words, attentions, ...)
├── TokenizerMismatch       the tokenizer is not the one that the run was pretrained with
├── CorpusError             text, treebank, or facts that cannot be read as what they should be
├── UnknownMetric           no metric of that name
├── UnknownPreset           no pretraining preset of that name
├── ConfigError             pretraining settings that contradict each other or the run on disk
├── QueryError              a text that cannot be queried (no [MASK], too long, ...)
│   └── TooCostly           a question above the budget of a hosted demo
├── FigureError             a figure that has nothing to draw, or cannot be written to a file
└── ResultsError            a result that may not be written, or that cannot be read
    ├── BrokenExamples      the example questions of a run cannot be read
    └── OtherData           results at hand are of other data than those received
"""

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches

INTERRUPTED = 128 + 2  # what a shell gives for a command that SIGINT ended


class EmbryoError(Exception):
    """Base of all errors a user can cause and mend; the command line prints the message without a traceback."""


class RunError(EmbryoError):
    """A run folder is not what it should be."""


class UnknownRun(RunError):
    """No run of that name."""


class BrokenRun(RunError):
    """A run whose run.json, log, state or tokenizer is missing or unreadable."""


class BrokenTokenizer(BrokenRun):
    """The tokenizer that came with foreign checkpoints cannot be read."""


class BrokenTrainerState(RunError):
    """trainer_state.json beside a checkpoint cannot be read; the checkpoint can do without."""


class BusyRun(RunError):
    """Another process is pretraining the run."""


class CheckpointError(EmbryoError):
    """One step of a run is not what it should be."""


class UnknownStep(CheckpointError):
    """The run has no checkpoint at that step."""


class MissingWeights(CheckpointError):
    """The weights of a checkpoint were removed to save space; its results are still there."""


class BrokenCheckpoint(CheckpointError):
    """Files of a checkpoint are missing, truncated, or not the ones named in its manifest."""


class BrokenList(BrokenCheckpoint):
    """The user's own list of added runs, by which weights outside a run are found, cannot be read."""


class MissingCapability(EmbryoError):
    """A model was asked for what it does not give (masked words, attentions, ...)."""


class TokenizerMismatch(EmbryoError):
    """The tokenizer is not the one that the run was pretrained with."""


class CorpusError(EmbryoError):
    """Text, a treebank, or facts that cannot be read as what they should be."""


class UnknownMetric(EmbryoError):
    """No metric of that name."""


class UnknownPreset(EmbryoError):
    """No pretraining preset of that name."""


class ConfigError(EmbryoError):
    """Pretraining settings that contradict each other or the run on disk."""


class QueryError(EmbryoError):
    """A text that cannot be queried."""


class TooCostly(QueryError):
    """A question that costs more than this server spends on one; `command` answers it elsewhere."""

    def __init__(self, message: str, command: str):
        super().__init__(message)
        self.command = command


class FigureError(EmbryoError):
    """A figure that has nothing to draw, or cannot be written to a file."""


class ResultsError(EmbryoError):
    """A result that may not be written, or that cannot be read."""


class BrokenExamples(ResultsError):
    """Example questions of a run that cannot be read."""


class OtherData(ResultsError):
    """Results at hand are of other data than those received; the two never mix."""


def unknown(what: str, received: str, known: Iterable[str], then: str = "") -> str:
    """The message for a name that is not in a list, with the nearest known name.

    >>> unknown("metric", "pos", ["mask_prediction", "pos_probe"])
    "Unknown metric 'pos'. Did you mean 'pos_probe'? Known: mask_prediction, pos_probe."
    """
    names = list(known)
    near = get_close_matches(received, names, n=1, cutoff=0.4)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"Unknown {what} '{received}'.{hint} Known: {', '.join(names) or 'none'}.{' ' + then if then else ''}"


def first_line(reason: BaseException) -> str:
    """The first line of what an exception says that is not blank; the name of its class where there is none.

    >>> first_line(ValueError("\\nOut of range.\\nTraceback ..."))
    'Out of range.'
    """
    lines = (line.strip() for line in str(reason).splitlines())
    return next(filter(None, lines), type(reason).__name__)


def exit_status(command: Callable[[], int], stopped: str) -> int:
    """Run a command to its exit status: its own, 2 for an error, 130 for Ctrl-C, of which `stopped` says what is left.

    What ended it is one sentence on stderr.
    """
    try:
        return command()
    except EmbryoError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a folder that may not be written
        print(f"Error: {error}; what was written stays, and the same command goes on from there.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"Stopped; {stopped}.", file=sys.stderr)
        return INTERRUPTED
