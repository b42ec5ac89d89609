"""`query`: answers to a text with [MASK], a tracked word, the lens."""

import argparse

from embryo_core import runs
from embryo_core.commands.arguments import RUN, add_device, positive, whole
from embryo_core.types import Run

HELP = "fill the [MASK] of a text, track a word, or read every layer, at one step or at all"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The text, the steps, and what is read."""
    command.epilog = "Write -- before a text that begins with -, and --track=WORD for such a word."
    command.add_argument("run", metavar="RUN", help=RUN)
    command.add_argument("text", metavar="TEXT", help="for example: 'The capital of France is [MASK] .'")
    steps = command.add_mutually_exclusive_group()
    steps.add_argument("--step", type=_step, help="a step of the run, or all (default: all; 32 of a longer series)")
    steps.add_argument("--steps", nargs="+", type=whole, metavar="STEP", help="several steps")
    command.add_argument("--top", type=positive, default=10, metavar="K", help="answers at one step (default 10)")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--track", metavar="WORD", help="probability and rank of this word, of one piece or several")
    what.add_argument("--lens", action="store_true", help="what each layer would answer")
    command.add_argument(
        "--mask", type=positive, default=1, metavar="M", help="the [MASK] to track or read, 1 is the first (default)"
    )
    add_device(command)


def execute(options: argparse.Namespace) -> int:
    """Ask, and print the answer as a table."""
    from embryo_core.engine.cache import MODELS
    from embryo_core.engine.device import find_device
    from embryo_core.query import report

    MODELS.device = find_device(options.device, options.dtype)

    run, step = runs.open_run(options.run), None if options.step == "all" else options.step
    steps = options.steps
    if options.step is None and steps is None:
        steps = _log_spaced(run)
    if options.track is not None:
        print(report.report_track(run, options.text, options.track, options.mask, steps if step is None else [step]))
    elif options.lens:
        print(report.report_lens(run, options.text, options.mask, step, options.top, steps))
    elif step is None:
        print(report.report_trace(run, options.text, steps))
    else:
        print(report.report_answers(run, options.text, step, options.top))
    return 0


def _log_spaced(run: Run) -> list[int] | None:
    """The steps that are asked of a long series, as the Query page asks first, which is said; None: all."""
    from embryo_core.curves.step_scales import log_spaced
    from embryo_core.query.refine import FIRST

    known = [checkpoint.step for checkpoint in runs.loadable(run)]
    if len(known) <= FIRST:
        return None
    print(f"{FIRST} of {len(known):,} checkpoints, log-spaced; --step all asks at every one.\n")
    return log_spaced(known, FIRST)


def _step(text: str) -> int | str:
    if text != "all" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is neither a step nor all")
    return text if text == "all" else int(text)
