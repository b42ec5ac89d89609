"""The command line: python -m embryo_core evaluate | runs | query | examples | animate | fetch; each parses, calls, prints."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from embryo_core import runs
from embryo_core.corpora import FETCHED
from embryo_core.errors import CorpusError, EmbryoError, RunError
from embryo_core.types import Run

INTERRUPTED = 128 + 2  # what a shell gives for a command that SIGINT ended
QUESTIONS = runs.REPOSITORY / "data" / "sample" / "questions.tsv"
CORPORA = runs.REPOSITORY / "data" / "corpora"  # where fetch puts what it downloads


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit status: 0 done, 1 done but for the failures told, 2 an error, 130 stopped with Ctrl-C.

    What ended a command is one sentence on stderr.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser(with_metrics=list(arguments[:1]) == ["evaluate"]).parse_args(arguments)
    try:
        return options.command(options)
    except EmbryoError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a folder that may not be written
        print(f"Error: {error}; what was written stays, and the same command goes on from there.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; what was written stays.", file=sys.stderr)
        return INTERRUPTED


def _parser(with_metrics: bool) -> argparse.ArgumentParser:
    """All commands; what the metrics declare only where they are needed, since they import numpy."""
    parser = argparse.ArgumentParser(
        "python -m embryo_core", description="Evaluate and query the checkpoints of a run."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser(
        "evaluate", help="compute metrics at the checkpoints of a run; what is done is skipped"
    )
    command.add_argument("run", metavar="RUN", help="name of a run, or its folder")
    command.add_argument("--metrics", nargs="+", metavar="METRIC", help="default: all whose needs the checkpoints meet")
    command.add_argument("--steps", nargs="+", type=int, metavar="STEP", help="default: every checkpoint")
    command.add_argument(
        "--limit",
        type=_positive,
        metavar="N",
        help="the first N sentences, facts of each relation, examples of each split",
    )
    command.add_argument("--overwrite", action="store_true", help="compute again what is done")
    if with_metrics:
        _add_data(command)
    command.set_defaults(command=_evaluate)

    command = commands.add_parser("runs", help="list the runs and what has been computed for them, or thin one")
    command.add_argument("--thin", metavar="RUN", help="list the weights that would go, checkpoint by checkpoint")
    command.add_argument(
        "--keep",
        nargs="+",
        type=_kept,
        metavar="WHAT",
        help="with --thin: the checkpoints that keep their weights: steps, every:N, log:K (nearest to K per doubling)",
    )
    command.add_argument("--yes", action="store_true", help="with --thin: remove these weights; results always stay")
    command.set_defaults(command=_runs)

    command = commands.add_parser(
        "query",
        help="fill the [MASK] of a text, track a word, or read every layer, at one step or at all",
        epilog="Write -- before a text that begins with -, and --track=WORD for such a word.",
    )
    command.add_argument("run", metavar="RUN", help="name of a run, or its folder")
    command.add_argument("text", metavar="TEXT", help="for example: 'The capital of France is [MASK] .'")
    command.add_argument("--step", type=_step, default="all", help="a step of the run, or all (default)")
    command.add_argument("--top", type=_positive, default=10, metavar="K", help="answers at one step (default 10)")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--track", metavar="WORD", help="probability and rank of this word, of one piece or several")
    what.add_argument("--lens", action="store_true", help="what each layer would answer")
    command.add_argument(
        "--mask", type=_positive, default=1, metavar="M", help="the [MASK] to track or read, 1 is the first (default)"
    )
    command.set_defaults(command=_query)

    command = commands.add_parser("examples", help="find questions that a run comes to answer, for its Query page")
    command.add_argument("run", metavar="RUN", help="name of a run, or its folder")
    command.add_argument(
        "--questions", type=Path, default=QUESTIONS, metavar="FILE", help="texts with [MASK], a tab, the word"
    )
    command.set_defaults(command=_examples)

    command = commands.add_parser("animate", help="the development of one attention head, as a GIF or a web page")
    command.add_argument("run", metavar="RUN", help="name of a run, or its folder")
    command.add_argument("--layer", type=int, required=True, metavar="N", help="1 is the lowest")
    command.add_argument("--head", type=int, required=True, metavar="N", help="1 is the first")
    command.add_argument("--colours", choices=("linear", "log"), default="linear", help="scale (default linear)")
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="head.gif or head.html")
    command.set_defaults(command=_animate)

    command = commands.add_parser("fetch", help="download public evaluation data into data/corpora")
    command.add_argument(
        "what", choices=(*FETCHED, "ontonotes"), help="OntoNotes is licensed: tells where to get it"
    )
    command.set_defaults(command=_fetch)
    return parser


def _add_data(command: argparse.ArgumentParser) -> None:
    """What the metrics declare: their sources, variants and options."""
    from embryo_core import metrics

    group = command.add_argument_group("data and options of metrics")
    group.add_argument(
        "--data", type=_named_path, action="append", default=[], metavar="NAME=PATH", help="the data named NAME"
    )
    for name, form in {metric.source: metric.form for metric in metrics.METRICS}.items():
        group.add_argument(f"--{name}", dest="data", type=_path_of(name), action="append", metavar="PATH", help=form)
    for metric in metrics.METRICS:
        if metric.variants:
            group.add_argument(
                f"--{metric.variants}",
                dest="data",
                type=_named_path_of(metric.source),
                action="append",
                metavar="NAME=PATH",
                help=f"{metric.name} on data of your own",
            )
        for option in metric.options:
            group.add_argument(
                f"--{option.name}",
                type=_positive if isinstance(option.default, int) else type(option.default),
                choices=option.choices,
                default=option.default,
                help=f"{option.help} (default %(default)s)",
            )


# === Commands ===


def _evaluate(options: argparse.Namespace) -> int:
    from embryo_core import metrics
    from embryo_core.evaluate import evaluate  # torch takes seconds to import, and the other commands do without

    run = runs.open_run(options.run)
    declared = [option for metric in metrics.METRICS for option in metric.options]
    fetched = _fetched_data({metric.source for metric in metrics.METRICS})
    report = evaluate(
        run,
        fetched | _by_name(options.data),
        options.metrics,
        options.steps,
        limit=options.limit,
        options={option.name: getattr(options, option.name.replace("-", "_")) for option in declared},
        overwrite=options.overwrite,
        progress=True,
    )
    if report.left_out:
        print(f"Left out, as no data were given for them: {', '.join(report.left_out)}.")
    for sentence in report.thinned:
        print(sentence)
    print(f"{report.computed} results computed, {report.done_before} were done before; results are in {run.results}.")
    for failure in report.failures:
        print(f"Failed: {failure}", file=sys.stderr)
    return 1 if report.failures else 0


def _runs(options: argparse.Namespace) -> int:
    if options.thin or options.keep or options.yes:
        return _thin(options)
    found, troubles = runs.list_runs(), [reason for _, reason in runs.broken_runs()]
    if not found:
        folders = " or ".join(str(root / "runs") for root in runs.roots())
        print(f"No run in {folders}; start one with: python -m pretrain tiny --corpus PATH --run data/runs/NAME")
    for run in found:
        checkpoints = runs.checkpoints(run)
        span = "no checkpoint"
        if checkpoints:
            span = f"{len(checkpoints)} checkpoints, steps {checkpoints[0].step} to {checkpoints[-1].step}"
        if thinned := sum(not checkpoint.has_weights for checkpoint in checkpoints):
            span += f", {thinned} without weights"
        print(f"{run.name}  {run.family}, {span}  ({run.path})")
        troubles += [reason for _, reason in runs.broken(run)] + _tell_contents(run)
    for trouble in troubles:
        print(f"Broken: {trouble}", file=sys.stderr)
    return 1 if troubles else 0


def _thin(options: argparse.Namespace) -> int:
    """List what goes, with its size; remove it only when told to."""
    if not (options.thin and options.keep):
        raise RunError("Thinning needs a run and what stays: python -m embryo_core runs --thin RUN --keep every:1000")
    run = runs.open_run(options.thin)
    going = runs.to_remove(run, options.keep)
    for checkpoint, size in going:
        print(f"step {checkpoint.step}: weights, {size / 1e6:,.1f} MB")
        if options.yes:
            runs.remove_weights(checkpoint)
    total = f"{sum(size for _, size in going) / 1e6:,.1f} MB in {len(going)} of {len(runs.checkpoints(run))} checkpoints"
    print(f"Removed: {total}." if options.yes else f"Nothing was removed yet; the same command with --yes frees {total}.")
    return 0


def _tell_contents(run: Run) -> list[str]:
    """Print what has been computed for a run and what is missing from its log; returns what cannot be read."""
    from embryo_core import results

    def tell_results() -> None:
        for metric in results.read_sources(run):
            print(f"    {metric}: {len(results.done(run, metric))} steps")

    def tell_log() -> None:
        if damaged := runs.damaged_lines(run):
            print(f"    log.jsonl: {damaged} damaged lines are left out")

    troubles = []
    for tell in (tell_results, tell_log):
        try:
            tell()
        except EmbryoError as error:
            troubles.append(str(error))
    return troubles


def _query(options: argparse.Namespace) -> int:
    from embryo_core.query import report

    run, step = runs.open_run(options.run), None if options.step == "all" else options.step
    if options.track is not None:
        steps = None if step is None else [step]
        print(report.report_track(run, options.text, options.track, options.mask, steps))
    elif options.lens:
        print(report.report_lens(run, options.text, options.mask, step, options.top))
    elif step is None:
        print(report.report_trace(run, options.text))
    else:
        print(report.report_answers(run, options.text, step, options.top))
    return 0


def _examples(options: argparse.Namespace) -> int:
    from embryo_core import query, results

    run = runs.open_run(options.run)
    examples = query.find_examples(run, query.read_questions(options.questions))
    results.write_examples(run, examples)
    for example in examples:
        since = "not learned yet" if example.since is None else f"learned at step {example.since:,}"
        print(f"{example.text}  {example.word}, {since}")
    return 0


def _animate(options: argparse.Namespace) -> int:
    from embryo_core.share import check_suffix, read_averaged, write_animation

    check_suffix(options.output)
    history = read_averaged(runs.open_run(options.run), options.layer, options.head)
    write_animation(history, options.output, options.colours)
    print(f"{options.output}: {history.title}, {len(history.steps)} steps from {history.steps[0]} to {history.steps[-1]}")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    from embryo_core.fetch import fetch

    for path in fetch(options.what, CORPORA):
        print(path)
    return 0


# === Arguments ===


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"received {text}; give a number of at least 1")
    return number


def _kept(text: str) -> str:
    if not re.fullmatch(r"\d{1,18}|(every|log):[1-9]\d{0,17}", text):
        raise argparse.ArgumentTypeError(f"received {text!r}; give a step, every:N or log:K")
    return text


def _named_path(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"received {text!r}; give NAME=PATH")
    return name, Path(path)


def _path_of(name: str) -> Callable[[str], tuple[str, Path]]:
    """Parses the PATH of --treebank PATH, which is short for --data treebank=PATH."""
    return lambda text: (name, Path(text))


def _named_path_of(source: str) -> Callable[[str], tuple[str, Path]]:
    """Parses the NAME=PATH of --probe NAME=PATH, which is short for --data probing:NAME=PATH."""

    def parse(text: str) -> tuple[str, Path]:
        name, path = _named_path(text)
        return f"{source}:{name}", path

    return parse


def _by_name(data: list[tuple[str, Path]]) -> dict[str, Path]:
    names = [name for name, _ in data]
    for name in names:
        if names.count(name) > 1:
            raise CorpusError(f"The data '{name}' are given twice; give each path a name of its own.")
    return dict(data)


def _fetched_data(sources: set[str]) -> dict[str, Path]:
    """The folders in data/corpora that are named for a source; of a treebank its test split."""
    folders = {folder.name: folder for folder in CORPORA.glob("*/") if folder.name in sources}
    return {name: next(iter(sorted(folder.glob("*-test.conllu"))), folder) for name, folder in folders.items()}


def _step(text: str) -> int | str:
    return text if text == "all" else int(text)
