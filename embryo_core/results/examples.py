"""Example questions of a run, in examples.json beside its results."""

import os
from collections.abc import Sequence

from msgspec import to_builtins

from embryo_core import runs
from embryo_core.errors import BrokenExamples, ResultsError
from embryo_core.runs.schema import ExampleQuestion, Examples
from embryo_core.types import Run

FILE = "examples.json"


def read_examples(run: Run) -> list[ExampleQuestion]:
    """The examples of a run, in their order; none where none were looked for. Raises BrokenExamples."""
    path = run.results / FILE
    if not os.path.lexists(path):
        return []
    return runs.read_json(path, run.results, Examples, BrokenExamples)


def write_examples(run: Run, examples: Sequence[ExampleQuestion]) -> None:
    """Keep these as the examples of a run, in place of any before."""
    runs.own_folder(run.results, run.results, ResultsError)
    runs.write_json(run.results / FILE, to_builtins(list(examples)))
