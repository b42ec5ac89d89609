"""Runs as data for notebooks and scripts: results as DataFrames, live answers, figures (docs/python.md)."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from embryo_core import comparison, corpora, results, runs
from embryo_core.comparison import Rule
from embryo_core.curves import baselines
from embryo_core.errors import ConfigError, UnknownMetric, unknown
from embryo_core.findings import judge
from embryo_core.metrics import METRICS
from embryo_core.plots import Plots
from embryo_core.share.head_history import read_averaged
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Checkpoint, Run
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.evaluation import Report


class Study:
    """One run with its results. Every call reads its table again, so new evaluations are included.

    Methods that read results raise ResultsError. `log` and `findings` also raise BrokenRun; `baselines` of metrics with
    words loads the tokenizer and raises BrokenRun or TokenizerMismatch.
    """

    def __init__(self, run: "Study | Run | str | Path"):
        opened = run.run if isinstance(run, Study) else run
        self.run: Run = opened if isinstance(opened, Run) else runs.open_run(opened)

    def __repr__(self) -> str:
        return f"<Study of {self.run.name}: {self.run.family}, {quantity(len(self.steps), 'checkpoint')}>"

    def _repr_html_(self) -> str:
        """Return the run's design as an HTML table, which notebooks display."""
        rows = {row: value for row, value in comparison.design(self.run).items() if value is not None}
        card = pd.DataFrame({self.run.name: rows.values()}, rows.keys(), dtype=object)
        return card.to_html(formatters=[lambda value: f"{value:,}" if isinstance(value, int) else str(value)])

    @property
    def steps(self) -> tuple[int, ...]:
        """Return the steps of the checkpoints, ascending."""
        return tuple(checkpoint.step for checkpoint in runs.checkpoints(self.run))

    def log(self) -> pd.DataFrame:
        """Return the training log, one row per step and split ("train", "heldout"): losses, accuracies and n."""
        return pd.DataFrame(runs.read_log(self.run))

    @property
    def plot(self) -> Plots:
        """Return the figures of the run."""
        return Plots((self.run,))

    def checkpoint(self, step: int) -> Checkpoint:
        """Return the checkpoint of a step, whose `path` transformers can load. Raises UnknownStep."""
        return runs.checkpoint(self.run, step)

    def model(self, step: int) -> "Model":
        """Load the model of a step: token ids in, numpy arrays out. Raises UnknownStep, and errors of `engine.load`."""
        from embryo_core.engine.model import load  # loads torch

        return load(self.checkpoint(step))

    def scores(self, metric: str | None = None) -> pd.DataFrame:
        """Return the scores of one metric or of all: run, metric, step, layer, group, value, n.

        A metric with several measures has rows for each, named like "geometry_anisotropy". Raises UnknownMetric.
        """
        names = {*results.read_metrics(self.run), *(one.name for one in METRICS)}
        if metric is not None and metric not in names:
            raise UnknownMetric(unknown("metric", metric, sorted(names)))
        table = results.read_scores(self.run, metric)
        if metric and table.empty:
            all_scores = results.read_scores(self.run)
            table = all_scores[all_scores["metric"].str.startswith(f"{metric}_")].reset_index(drop=True)
        return table

    def words(self, metric: str = "mask_prediction", group: str | None = None, step: int | None = None) -> pd.DataFrame:
        """Return the words behind the scores of a metric, in one group or all, at one step or all.

        Columns: metric, step, tag, word, band, n, correct. Raises UnknownMetric for an unknown metric, group or step.
        """
        table = results.read_words(self.run, metric, group, step)
        scores = self.scores(metric)
        if table.empty and len(scores):
            for kind, wanted, column in (("group", group, scores["group"]), ("step", step, scores["step"])):
                if wanted is not None and wanted not in set(column):
                    raise UnknownMetric(unknown(f"{kind} of {metric}", str(wanted), map(str, column.unique())))
        return table

    def cloze(self, relation: str | None = None, fact: str | None = None) -> pd.DataFrame:
        """Return the answers to LAMA's facts at each step: step, fact, relation, subject, object, rank, ..."""
        return results.read_cloze(self.run, relation, fact)

    def baselines(self, metric: str = "world_knowledge") -> pd.DataFrame:
        """Return the accuracy of always answering a group's most frequent word or object: group, answer, value, n."""
        if metric == "world_knowledge":
            return baselines.fact_baselines(results.read_histories(self.run))
        words = results.read_words(self.run, metric)
        return baselines.word_baselines(words[words["step"] == words["step"].max()], load_tokenizer(self.run).cased)

    def task_scores(self, task: str | None = None) -> pd.DataFrame:
        """Return the scores of fine-tuned checkpoints and controls: step, task, seed, predictor, metric, value, n.

        Raises UnknownMetric for a task without scores.
        """
        scores = results.read_task_scores(self.run, task)
        if scores.empty and task is not None:
            tasks = results.read_task_scores(self.run)["task"].unique()
            raise UnknownMetric(unknown("task", task, map(str, tasks)))
        return scores

    def attention(self, layer: int, head: int) -> pd.DataFrame:
        """Return the averaged maps of a head, counted from 1: step, origin, target (positions from 0), weight."""
        history = read_averaged(self.run, layer, head)
        step, origin, target = np.indices(history.weights.shape)
        places = {"step": history.steps[step.ravel()], "origin": origin.ravel(), "target": target.ravel()}
        return pd.DataFrame(places | {"weight": history.weights.ravel()})

    def query(self, text: str, step: int | None = None, k: int = 10) -> pd.DataFrame:
        """Return the k best pieces for each [MASK], or for the continuation of a text, at one step.

        The default step is the last one with weights. Columns: mask, rank, token, probability. Masks count from 1; each
        is answered given the best answers to the masks before it. For a model that predicts next words, the mask is
        always 1. Raises QueryError, CheckpointError, TokenizerMismatch, MissingCapability.
        """
        from embryo_core.query import TOGETHER  # loads torch

        if step is None:
            step = max((checkpoint.step for checkpoint in runs.loadable_checkpoints(self.run)), default=0)
        table = self.ask(text, [step], k=k)
        rows = table[table["listed"] & (table["mask"] != TOGETHER)]
        return rows[["mask", "rank", "token", "probability"]].reset_index(drop=True)

    def ask(
        self,
        text: str,
        steps: Iterable[int] | None = None,
        track: str | None = None,
        mask: int = 1,
        k: int = 10,
    ) -> pd.DataFrame:
        """Return live answers at `steps`, by default at all steps with weights: the table of `query/answers.py`.

        Columns: step, mask, given, layer, rank, token, probability, exact, listed, leads. Mask 0 means all masks
        together, or the greedy continuation. Masks after the first are answered with the best answers in the masks
        before, which are in the column `given` ("" for the first mask). With `track`, the answers are the probability
        of one word at `mask`. Errors as for `query`.
        """
        from embryo_core import query  # loads torch

        question = query.parse(self.run, text)
        answers = query.ask(self.run, question.track(track, mask) if track else question, steps, k)
        return answers.table_with_given()

    def lens(self, text: str, mask: int = 1, steps: Iterable[int] | None = None, k: int = 10) -> pd.DataFrame:
        """Return the answers of each layer at `mask`, where layer 0 is the embeddings: columns and errors of `ask`."""
        from embryo_core import query  # loads torch

        return query.ask_layers(self.run, text, mask, steps, k).table_with_given()

    def findings(self) -> pd.DataFrame:
        """Return a row for each finding of the paper: name, claim, section, verdict, hold, opposed, of, statistic.

        `hold` and `opposed` count comparisons, `of` all of them.
        """
        judged = judge(self.run)
        counts = [
            {"hold": judgement.hold_count, "opposed": judgement.opposed_count, "of": len(judgement.comparisons)}
            for judgement in judged
        ]
        rows = [judgement.text_fields | count for judgement, count in zip(judged, counts, strict=True)]
        return pd.DataFrame(rows, columns="name claim section verdict hold opposed of statistic".split())


# === Several runs ===


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """A comparison of runs, as on the Compare page and by `python -m embryo_core compare`."""

    runs: tuple[Run, ...]
    metric: str
    rule: Rule

    @cached_property
    def design(self) -> pd.DataFrame:
        """Return the designs of the runs: row, a column for each run, differs."""
        return comparison.designs(self.runs)

    @cached_property
    def acquisition(self) -> pd.DataFrame:
        """Return the onset of each part of speech in each run: run, place, group, onset, earliest, latest, last, n."""
        return comparison.acquisitions(self.runs, self.metric, comparison.PARTS_OF_SPEECH, self.rule)

    @cached_property
    def agreement(self) -> pd.DataFrame:
        """Return the rank agreement of every two runs, and of each with the paper: first, second, rho, low, high, n."""
        return comparison.agreements(self.acquisition)

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Return `comparison.differences` between the first run's design and each other one, with its `runs`."""
        first, *others = comparison.group_by_design(self.runs)
        tables = [
            comparison.differences(first, seeds).assign(runs=", ".join(one.name for one in seeds)) for seeds in others
        ]
        return pd.concat(tables, ignore_index=True) if tables else comparison.differences(first, first)[:0]

    @property
    def plot(self) -> Plots:
        """Return the figures of the runs, drawn together."""
        return Plots(self.runs)

    def _repr_html_(self) -> str:
        return self.design.to_html(index=False, na_rep="–")


def compare(
    chosen: Sequence[Study | Run | str | Path], metric: str = "mask_prediction", rule: Rule = "half"
) -> ComparedRuns:
    """Compare runs, given by name, path or Study; `metric` and `rule` determine the order of acquisition.

    Raises UnknownRun and BrokenRun.
    """
    return ComparedRuns(tuple(dict.fromkeys(Study(one).run for one in chosen)), metric, rule)


def evaluate(
    run: Study | Run | str | Path,
    metrics: Sequence[str] | None = None,
    data: Mapping[str, str | Path] | None = None,
    steps: Iterable[int] | None = None,
    *,
    limit: int | None = None,
    overwrite: bool = False,
    progress: bool = True,
    **options: Any,
) -> "Report":
    """Compute metrics at the checkpoints of a run and write the results; skip existing results unless `overwrite`.

    `data` maps sources to paths, such as {"treebank": "ewt-test.conllu"}; fetched data need no path. `options` are
    options of metrics, with _ for -. Raises EmbryoError for an unknown metric, source, step or option, and for data
    that are missing or unreadable.
    """
    from embryo_core.evaluation.evaluator import evaluate as compute  # loads torch

    declared = [option.name.replace("-", "_") for metric in METRICS for option in metric.options]
    for name in options:
        if name not in declared:
            raise ConfigError(unknown("option", name, dict.fromkeys(declared)))
    sources = {source for metric in METRICS for source in metric.sources}
    paths = corpora.find_fetched(sources) | {name: Path(path) for name, path in (data or {}).items()}
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return compute(
        Study(run).run, paths, metrics, steps, limit=limit, options=named, overwrite=overwrite, progress=progress
    )


def add(
    source: str | Path | Sequence[str],
    name: str,
    steps: Iterable[int] | None = None,
    patterns: Sequence[str] = (),
    tokenizer: str | None = None,
    copy: bool = False,
    seed: int | None = None,
) -> Study:
    """Make a run from checkpoints that other code wrote, and open it; arguments and errors as for `sources.add`.

    The source is a folder, "hf:OWNER/NAME", or several "STEP:PATH". Warns about checkpoints that were left out.
    """
    from embryo_core.sources import add as make

    several = [str(source)] if isinstance(source, str | Path) else source
    added = make(several, name, steps, patterns, tokenizer, copy, seed)
    for trouble in added.troubles:
        warnings.warn(trouble, stacklevel=2)
    return Study(added.run)


def list_runs() -> pd.DataFrame:
    """Return the runs in the data folders: run, family, objective, checkpoints, last step."""
    rows = []
    for run in runs.list_runs():
        steps = [checkpoint.step for checkpoint in runs.checkpoints(run)]
        rows.append((run.name, run.family, run.objective, len(steps), max(steps, default=None)))
    return pd.DataFrame(rows, columns=["run", "family", "objective", "checkpoints", "last step"])
