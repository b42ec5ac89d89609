"""`query` asks checkpoints to fill or continue a text; `examples` finds questions that a run learns to answer."""

import argparse
from pathlib import Path

from embryo_core import runs
from embryo_core.commands.arguments import Command, add_device, add_run, positive, whole
from embryo_core.errors import QueryError
from embryo_core.words import name_step

TEXT_HELP = (
    "'The capital of France is [MASK] .' to be filled, or, for a decoder, 'The capital of France is' to be continued"
)
QUESTIONS = runs.REPOSITORY / "data" / "sample" / "questions.tsv"


def add_query_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `query`: run, text, steps, and what to print."""
    command.usage = "%(prog)s RUN TEXT [options]"
    command.epilog = "Write -- before a text that begins with -, and --track=WORD for such a word."
    add_run(command)
    command.add_argument("text", metavar="TEXT", help=TEXT_HELP)
    steps = command.add_mutually_exclusive_group()
    steps.add_argument(
        "--step", type=_step, help="one step, or all (default: all, or 32 log-spaced ones of a longer series)"
    )
    steps.add_argument("--steps", nargs="+", type=whole, metavar="STEP", help="several steps")
    command.add_argument("--top", type=positive, default=10, metavar="K", help="answers at one step (default 10)")
    kinds = command.add_mutually_exclusive_group()
    kinds.add_argument("--track", metavar="WORD", help="probability and rank of this word, of one piece or several")
    kinds.add_argument("--lens", action="store_true", help="answers of each layer")
    command.add_argument(
        "--mask", type=positive, metavar="M", help="with --track or --lens: number of the [MASK] (default 1, the first)"
    )
    add_device(command)


def ask(options: argparse.Namespace) -> int:
    """Query the checkpoints and print the answers as a table."""
    if options.mask and options.track is None and not options.lens:
        raise QueryError(
            "--mask is for --track or --lens, and neither is given; without them every [MASK] is answered."
        )
    from embryo_core.engine.cache import MODELS
    from embryo_core.engine.device import find_device
    from embryo_core.query import report
    from embryo_core.query.asking import first_steps

    MODELS.device = find_device(options.device, options.dtype)

    mask = options.mask or 1
    run, step = runs.open_run(options.run), None if options.step == "all" else options.step
    steps = options.steps
    if options.step is None and steps is None and (steps := first_steps(run)):
        loadable = len(runs.loadable_checkpoints(run))
        print(f"{len(steps)} of {loadable:,} checkpoints, log-spaced; --step all queries all of them.\n")
    if options.track is not None:
        print(report.report_word(run, options.text, options.track, mask, steps if step is None else [step]))
    elif options.lens:
        if step is None:
            print(report.report_layers(run, options.text, mask, steps))
        else:
            print(report.report_layers_at_step(run, options.text, step, mask, options.top))
    elif step is None:
        print(report.report_history(run, options.text, steps))
    else:
        print(report.report_step(run, options.text, step, options.top))
    return 0


def _step(text: str) -> int | str:
    if text != "all" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a step or 'all'")
    return text if text == "all" else int(text)


def add_examples_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `examples`: the run, and the questions to try."""
    add_run(command)
    line = "file with a text with [MASK], a tab and the word per line (default: data/sample/questions.tsv)"
    command.add_argument("--questions", type=Path, default=QUESTIONS, metavar="FILE", help=line)


def find_examples(options: argparse.Namespace) -> int:
    """Find examples among the questions, store them with the run's results, and print them."""
    from embryo_core import query, results

    run = runs.open_run(options.run)
    examples = query.find_examples(run, query.read_questions(options.questions))
    results.write_examples(run, examples)
    for example in examples:
        since = "not learned yet" if example.since is None else f"learned at {name_step(example.since, run.step_unit)}"
        print(f"{example.text}  {example.word}, {since}")
    return 0


QUERY = Command(
    "query",
    "fill the [MASK] of a text or continue it, track a word, or read every layer, at one step or at all",
    add_query_arguments,
    ask,
)
EXAMPLES = Command(
    "examples", "find questions that a run learns to answer, for its Query page", add_examples_arguments, find_examples
)
