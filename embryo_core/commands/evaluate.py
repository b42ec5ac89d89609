"""`evaluate` computes metrics at the checkpoints of a run."""

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from embryo_core import corpora, runs
from embryo_core.commands.arguments import Command, add_device, add_ray, add_run, named_path, positive, whole
from embryo_core.commands.finetune import add_folders, finetune_and_report, glue_folders, print_report
from embryo_core.errors import CorpusError
from embryo_core.finetune.task_specs import SQUAD
from embryo_core.types import Run
from embryo_core.words import quantity


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `evaluate`: run, metrics, steps, device, data, and downstream tasks."""
    command.usage = "%(prog)s RUN [options]"
    add_run(command)
    command.add_argument("--metrics", nargs="+", metavar="METRIC", help="metrics to compute (default: all that apply)")
    command.add_argument(
        "--steps", nargs="+", type=whole, metavar="STEP", help="checkpoints to evaluate (default: all)"
    )
    command.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="use the first N sentences of a treebank or n-gram text, facts of each relation, pairs of each paradigm, "
        "examples of each split; the text of --words is read whole, see --occurrences",
    )
    command.add_argument("--overwrite", action="store_true", help="recompute results that exist")
    command.add_argument("--discard", action="store_true", help="afterwards delete weights fetched from the Hub")
    add_device(command)
    add_ray(command, "a checkpoint")
    _add_data(command)
    group = command.add_argument_group("fine-tuning, by the quick protocol and one seed; `finetune` has the others")
    add_folders(group)


def execute(options: argparse.Namespace) -> int:
    """Evaluate and fine-tune; print what was computed, left out, and failed."""
    run = runs.open_run(options.run)
    tasks = glue_folders(options.glue) if options.glue else {}
    tasks |= {SQUAD: options.squad} if options.squad else {}
    for folder in tasks.values():  # checked before an evaluation that may take hours
        corpora.require(folder)
    given = [name for name, _ in options.data]
    if twice := [name for name in given if given.count(name) > 1]:
        raise CorpusError(f"The data '{twice[0]}' are given twice; give each path a different name.")
    data = corpora.find_fetched({*_forms()}) | dict(options.data)
    status = 0
    if data or options.metrics or not tasks:
        status = _evaluate(run, data, options)
    if tasks:
        how = {"device": options.device, "ray": options.ray, "overwrite": options.overwrite}
        status |= finetune_and_report(run, tasks, steps=options.steps, **how)
    return status


def _evaluate(run: Run, data: Mapping[str, Path], options: argparse.Namespace) -> int:
    """Compute metrics and print the report; return 1 if anything failed."""
    from embryo_core import metrics
    from embryo_core.engine.device import find_device
    from embryo_core.evaluation import evaluate, run_locally  # imports torch, which takes seconds
    from embryo_core.evaluation.cluster import run_on_ray

    how = {"device": options.device, "dtype": options.dtype, "discard": options.discard}
    if options.ray is None:
        compute = partial(run_locally, device=find_device(options.device, options.dtype), discard=options.discard)
    else:
        compute = partial(run_on_ray, address=options.ray, **how)
    declared = [option for metric in metrics.METRICS for option in metric.options]
    report = evaluate(
        run,
        data,
        options.metrics,
        options.steps,
        limit=options.limit,
        options={option.name: getattr(options, option.name.replace("-", "_")) for option in declared},
        overwrite=options.overwrite,
        progress=True,
        compute=compute,
    )
    if report.left_out:
        without = metrics.get_metrics(report.left_out)
        named = [f"{metric.name} (--{' and --'.join(metric.sources)})" for metric in without]
        print(f"Left out, because no data were given: {', '.join(named)}.")
    for sentence in report.lost:
        print(sentence)
    return print_report(run, report, f"{quantity(report.computed, 'result')} computed")


# === Data ===


def _add_data(command: argparse.ArgumentParser) -> None:
    """Add an argument for each source, variant and option that the metrics declare."""
    from embryo_core import metrics

    group = command.add_argument_group("data and options of metrics")
    group.add_argument(
        "--data", type=named_path, action="append", default=[], metavar="NAME=PATH", help="the same as --NAME PATH"
    )
    for name, form in _forms().items():
        path = partial(_path_of, name)
        group.add_argument(f"--{name}", dest="data", type=path, action="append", metavar="PATH", help=form)
    for metric in metrics.METRICS:
        if metric.variants:
            group.add_argument(
                f"--{metric.variants}",
                dest="data",
                type=partial(_named_path_of, metric.source),
                action="append",
                metavar="NAME=PATH",
                help=f"{metric.name} on data of your own",
            )
    for option in {option.name: option for metric in metrics.METRICS for option in metric.options}.values():
        if isinstance(option.default, bool):
            group.add_argument(f"--{option.name}", action="store_true", help=option.help)
        else:
            group.add_argument(
                f"--{option.name}",
                type=positive if isinstance(option.default, int) else type(option.default),
                metavar="N" if isinstance(option.default, int) else None,
                choices=option.choices,
                default=option.default,
                help=f"{option.help} (default %(default)s)",
            )


def _forms() -> dict[str, str]:
    """Return the help text on the expected form of each source, by its name."""
    from embryo_core import metrics

    seconds = {metric.second: metric.second_form for metric in metrics.METRICS if metric.second}
    return {metric.source: metric.form for metric in metrics.METRICS} | seconds


def _path_of(name: str, text: str) -> tuple[str, Path]:
    """Parse the PATH of --treebank PATH, which is short for --data treebank=PATH."""
    return name, Path(text)


def _named_path_of(source: str, text: str) -> tuple[str, Path]:
    """Parse the NAME=PATH of --probe NAME=PATH, which is short for --data probing:NAME=PATH."""
    name, path = named_path(text)
    return f"{source}:{name}", path


EVALUATE = Command(
    "evaluate", "compute metrics at the checkpoints of a run; existing results are kept", add_arguments, execute
)
