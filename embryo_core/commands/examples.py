"""`examples`: questions that a run comes to answer, for its Query page."""

import argparse
from pathlib import Path

from embryo_core import runs
from embryo_core.commands.arguments import RUN
from embryo_core.words import point

HELP = "find questions that a run comes to answer, for its Query page"
QUESTIONS = runs.REPOSITORY / "data" / "sample" / "questions.tsv"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The run, and the questions to try."""
    command.add_argument("run", metavar="RUN", help=RUN)
    command.add_argument(
        "--questions", type=Path, default=QUESTIONS, metavar="FILE", help="texts with [MASK], a tab, the word"
    )


def execute(options: argparse.Namespace) -> int:
    """Find the examples, keep them beside the results, and print them."""
    from embryo_core import query, results

    run = runs.open_run(options.run)
    examples = query.find_examples(run, query.read_questions(options.questions))
    results.write_examples(run, examples)
    for example in examples:
        learned = example.since is not None
        since = f"learned at {point(example.since, run.step_unit)}" if learned else "not learned yet"
        print(f"{example.text}  {example.word}, {since}")
    return 0
