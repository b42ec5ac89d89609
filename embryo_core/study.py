"""A run as data for notebooks and scripts: results as DataFrames, live answers, findings (docs/python.md)."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from embryo_core import results, runs
from embryo_core.corpora import baselines
from embryo_core.findings.judge import judge
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.words import quantity


class Study:
    """One run with its results. Every call reads its table anew, and so includes what has been evaluated since.

    Methods that read results raise ResultsError. `log` and `findings` raise BrokenRun, and `baselines`, which loads the
    tokenizer for a metric with words, BrokenRun or TokenizerMismatch.
    """

    def __init__(self, run: str | Path):
        self.run = runs.open_run(run)

    def __repr__(self) -> str:
        return f"<Study of {self.run.name}: {self.run.family}, {quantity(len(self.steps), 'checkpoint')}>"

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of the checkpoints, ascending."""
        return tuple(checkpoint.step for checkpoint in runs.checkpoints(self.run))

    def log(self) -> pd.DataFrame:
        """Return the training log, a row per step and split ("train", "heldout"): losses, accuracies and n."""
        return pd.DataFrame(runs.read_log(self.run))

    def scores(self, metric: str | None = None) -> pd.DataFrame:
        """Return the scores of a metric or of all: run, metric, step, layer, group, value, n."""
        return results.read_scores(self.run, metric)

    def words(self, metric: str = "mask_prediction", group: str | None = None, step: int | None = None) -> pd.DataFrame:
        """Return the words behind the scores of a metric, of one group or all, at one step or all.

        Columns: metric, step, tag, word, band, n, correct.
        """
        return results.read_words(self.run, metric, group, step)

    def cloze(self, relation: str | None = None, fact: str | None = None) -> pd.DataFrame:
        """Return each step's answers to LAMA's facts: step, fact, relation, subject, object, rank, probability, ..."""
        return results.read_cloze(self.run, relation, fact)

    def baselines(self, metric: str = "world_knowledge") -> pd.DataFrame:
        """Return the accuracy of always giving the most frequent answer of each group: group, answer, value, n.

        The answer is a relation's most frequent object for "world_knowledge", and a word for a metric with words.
        """
        if metric == "world_knowledge":
            return baselines.of_facts(results.read_histories(self.run))
        words = results.read_words(self.run, metric)
        return baselines.of_words(words[words["step"] == words["step"].max()], load_tokenizer(self.run).cased)

    def task_scores(self, task: str | None = None) -> pd.DataFrame:
        """Return the scores of fine-tuned checkpoints and controls: step, task, seed, predictor, metric, value, n."""
        return results.read_task_scores(self.run, task)

    def attention(self, layer: int, head: int) -> pd.DataFrame:
        """Return the averaged maps of a head, counted from 1: step, origin, target (positions from 0), weight."""
        history = results.read_attention(self.run, layer, head)
        step, origin, target = np.indices(history.weights.shape)
        return pd.DataFrame(
            {
                "step": history.steps[step.ravel()] if len(history.steps) else [],
                "origin": origin.ravel(),
                "target": target.ravel(),
                "weight": history.weights.ravel(),
            }
        )

    def query(self, text: str, step: int | None = None, k: int = 10) -> pd.DataFrame:
        """Return the k best pieces for each [MASK], or after a text, at a step, by default the last that has weights.

        Columns: mask, rank, token, probability. Masks count from 1; those after the first are answered given the best
        answer before. A model that predicts next words continues a text, at its one place 1. Raises QueryError,
        CheckpointError, TokenizerMismatch, MissingCapability.
        """
        from embryo_core import query  # loads torch

        last = max((checkpoint.step for checkpoint in runs.loadable(self.run)), default=0)
        chosen = last if step is None else step
        table = query.ask(self.run, text, [chosen], k).table
        rows = table[table["listed"] & (table["mask"] != query.TOGETHER)]
        return rows[["mask", "rank", "token", "probability"]].reset_index(drop=True)

    def ask(
        self,
        text: str,
        steps: Iterable[int] | None = None,
        track: str | None = None,
        mask: int = 1,
        layers: bool = False,
        k: int = 10,
    ) -> pd.DataFrame:
        """Return live answers at steps, by default at all that have weights: the table of `query/answers.py`.

        Columns: step, mask, layer, rank, token, probability, exact, listed, leads. Mask 0 means all masks together
        or for the greedy continuation; masks after the first are answered given the best answer before. `track` asks
        for one word, at `mask`; `layers` for the answers of each layer there. Errors as for `query`.
        """
        from embryo_core import query  # loads torch

        if layers:
            return query.ask_layers(self.run, text, mask, steps, k).table
        question = query.parse(self.run, text)
        return query.ask(self.run, question.track(track, mask) if track else question, steps, k).table

    def findings(self) -> pd.DataFrame:
        """Return the verdict on each finding of the paper (docs/metrics.md), a row for each.

        Columns: name, claim, place, verdict, hold, opposed, of, statistic.
        """
        rows = [
            {
                "name": one.finding.name,
                "claim": one.finding.claim,
                "place": one.finding.place,
                "verdict": one.verdict,
                "hold": one.holding,
                "opposed": one.opposed,
                "of": len(one.comparisons),
                "statistic": one.statistic,
            }
            for one in judge(self.run)
        ]
        return pd.DataFrame(rows)
