"""The figures of runs for notebooks: `run.plot.tokens()`, `embryo.compare([...]).plot.tokens()` (docs/python.md)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from embryo_core import results
from embryo_core.comparison import Rule, Unit
from embryo_core.curves.step_scales import Scale
from embryo_core.errors import FigureError, unknown
from embryo_core.figures import (
    acquisition,
    attention,
    compare,
    early_signals,
    finetuning,
    geometry,
    grammar,
    head_behaviour,
    knowledge,
    knowledge_facts,
    lens,
    ngrams,
    overview,
    probing,
    probing_layers,
    tokens,
    words,
)
from embryo_core.figures import query as asked
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.figure import Figure
from embryo_core.figures.patterns import PATTERNS
from embryo_core.findings.words import equivalent_metric
from embryo_core.share import Animation, read_averaged
from embryo_core.types import Run

if TYPE_CHECKING:
    from embryo_core.query import Answers


@dataclass(frozen=True)
class Plots:
    """The figures of one run, or of several runs drawn together, on one axis of steps.

    Each method returns a `Figure`, `attention` an `Animation`: a notebook displays either, and `save` writes it. The
    defaults are the same as in the dashboard. Methods raise ResultsError, and FigureError, which lists the valid
    choices.
    """

    runs: tuple[Run, ...]
    axis: AxisChoice = field(default_factory=AxisChoice)

    def __call__(self, scale: Scale = "log", unit: Unit = "step", smoothing: int = 1) -> "Plots":
        """Return the same figures on another axis: "log" or "linear", in steps, tokens, FLOPs, ..., and smoothed."""
        return replace(self, axis=AxisChoice(scale, unit, smoothing))

    # === Training ===

    def training(self, quantity: str | None = None) -> Figure:
        """Plot a loss or accuracy of the training log, by default the loss on words."""
        quantities = list(dict.fromkeys(name for run in self.runs for name in overview.logged_quantities(run)))
        return self._make(overview.training_curve, quantity=_check_choice("quantity", quantity, quantities))

    def ngrams(self) -> Figure:
        """Plot the divergence of predictions from the unigrams and bigrams of the training text."""
        return self._make(ngrams.divergence)

    # === Words ===

    def tokens(self, metric: str = "mask_prediction", groups: Sequence[str] | None = None) -> Figure:
        """Plot the accuracy by category, by default the paper's nine parts of speech."""
        return self._make(tokens.accuracy, metric=metric, groups=self._groups(metric, groups))

    def acquisition(
        self, metric: str = "mask_prediction", groups: Sequence[str] | None = None, rule: Rule = "half"
    ) -> Figure:
        """Plot the order in which categories are acquired, by a rule of `comparison.acquisition`."""
        return self._make(acquisition.acquisition, metric=metric, groups=self._groups(metric, groups), rule=rule)

    def word(self, word: str) -> Figure:
        """Plot the surprisal of a word of the evaluated list."""
        return self._make(words.curve, word=word)

    def ages(self) -> Figure:
        """Plot the proportion of words of the evaluated list that are acquired by each step."""
        return self._make(words.acquired)

    # === Layers and heads ===

    def attention(self, layer: int = 1, head: int = 1) -> Animation:
        """Show the averaged maps of a head of the first run, with a slider over the steps."""
        return Animation(read_averaged(self.runs[0], layer, head))

    def positions(self, layer: int = 1, head: int = 1) -> Figure:
        """Plot the weight of a head's averaged maps on fixed positions."""
        return self._make(attention.position_weights, layer=layer, head=head)

    def heads(self, pattern: str, layer: int = 1, head: int = 1) -> Figure:
        """Plot how strongly each head shows a pattern, such as "previous" or "dependent_to_head", over the steps."""
        existing = [
            pattern_name
            for pattern_name in PATTERNS
            if any(f"head_behaviour_{pattern_name}" in results.read_metrics(run) for run in self.runs)
        ]
        pattern = _check_choice("pattern", pattern, existing)
        change = PATTERNS[pattern].changes[0]
        return self._make(head_behaviour.over_steps, pattern=pattern, change=change, selected_head=(layer, head))

    def probing(self, layer: str | int = "best") -> Figure:
        """Plot the F1 of all probing tasks in the best layer at each step, or in one layer."""
        return self._make(probing.tasks, layer=layer)

    def layers(self, task: str, quantity: str = "f1") -> Figure:
        """Plot one probing task layer by layer."""
        existing = [
            str(name)
            for run in self.runs
            for name in results.read_scores(run, f"{probing.METRIC}_f1")["group"].unique()
        ]
        task = _check_choice("probing task", task, list(dict.fromkeys(existing)))
        return self._make(probing_layers.layers, task=task, quantity=quantity)

    def geometry(self, measure: str = "rank_me") -> Figure:
        """Plot a measure of the geometry of the hidden states, such as "rank_me", layer by layer."""
        return self._make(geometry.layers, measure=_check_choice("measure", measure, [*geometry.MEASURES]))

    # === Facts, grammar, tasks ===

    def knowledge(self, relations: Sequence[str] | None = None) -> Figure:
        """Plot precision at 1 on LAMA's relations, by default the ones that the Knowledge page shows first."""
        table = knowledge.precision_table(self.runs[0])
        known = table["relation"].unique().tolist()
        relation_names = _subset("relation", relations, known, knowledge.default_relations(table) if known else [])
        return self._make(knowledge.precision, relations=relation_names)

    def fact(self, relation: str, fact: str) -> Figure:
        """Plot the rank and probability of a fact's object."""
        return self._make(knowledge_facts.fact, relation=relation, fact=fact)

    def grammar(self, pairs: str | None = None, level: str = "paradigms") -> Figure:
        """Plot the accuracy on a set of minimal pairs, by "paradigms" or "phenomena"."""
        sets = list(dict.fromkeys(name for run in self.runs for name in grammar.pair_sets(run)))
        return self._make(grammar.accuracy, pair_set=_check_choice("set of pairs", pairs, sets), level=level)

    def finetuning(self, tasks: Sequence[str] | None = None) -> Figure:
        """Plot the scores of fine-tuned checkpoints."""
        existing = list(dict.fromkeys(str(task) for run in self.runs for task in results.read_task_scores(run)["task"]))
        return self._make(finetuning.scores, tasks=_subset("task", tasks, existing, existing))

    # === Comparisons of runs ===

    def differences(self) -> list[Figure]:
        """Plot, for each choice in which designs differ, its effect relative to the design of the first run."""
        changed = compare.changed_choices(self.runs) if len(self.runs) > 1 else {}
        return [self._make(compare.differences, choices=choices) for choices in changed]

    def early_signals(self, measure: str | None = None) -> Figure:
        """Plot how early a measure predicts the final ranking of three or more runs."""
        measures = early_signals.common_measures(self.runs)
        return self._make(early_signals.early_signals, measure=_check_choice("measure", measure, measures))

    # === Questions ===

    def answers(self, text: str, track: str | None = None, mask: int = 1) -> Figure:
        """Plot the first run's answers to a text by step, or the probability of the word `track`. Raises QueryError."""
        from embryo_core import query  # loads torch

        run, axis = self.runs[0], self.axis
        answers = query.ask(run, text)
        words = {asked.TRACKED: query.ask(run, answers.question.track(track, mask))} if track else {}
        table = asked.curve_table(answers, mask, words)
        shared = asked.share_axes([table], [axis.for_run(run)], log_probability=False)
        lead, subject = answers.lead(mask), _subject(answers, mask)
        return asked.answer_curves([run], axis, subject, table, lead, shared, "probability")

    def lens(self, text: str, mask: int = 1) -> Figure:
        """Plot the best answer of each layer of the first run over its checkpoints. Raises QueryError."""
        from embryo_core import query  # loads torch

        answers = query.ask_layers(self.runs[0], text, mask)
        return lens.lens(self.runs[:1], self.axis, _subject(answers, mask), answers.table, None, {})

    def _make(self, make: Callable[..., Figure], **options: Any) -> Figure:
        return make(self.runs, self.axis, **options)

    def _groups(self, metric: str, wanted: Sequence[str] | None) -> list[str]:
        """Return the wanted categories, by default the evaluated parts of speech. Raises FigureError."""
        scores = [results.read_scores(run, equivalent_metric(run, metric)) for run in self.runs]
        existing = [str(group) for table in scores for group in table["group"].unique()]
        if not existing:
            raise FigureError(
                unknown("metric", metric, sorted({name for run in self.runs for name in results.steps_by_metric(run)}))
            )
        default = [group for group in tokens.SETS["parts of speech"] if group in existing]
        return _subset("group", wanted, list(dict.fromkeys(existing)), default)


def _subject(answers: "Answers", mask: int) -> asked.Subject:
    question = answers.question
    return asked.Subject(question.text, mask, answers.masks, continues=question.continues)


def _check_choice(kind: str, choice: str | None, existing: Sequence[str]) -> str:
    """Return the wanted name, by default the first that exists. Raises FigureError, which lists the known names."""
    if not existing:
        raise FigureError(f"There is no {kind} to draw yet.")
    if choice is not None and choice not in existing:
        raise FigureError(unknown(kind, choice, existing))
    return choice or existing[0]


def _subset(kind: str, choices: Sequence[str] | None, existing: Sequence[str], default: Sequence[str]) -> list[str]:
    """Return the wanted names, or the default ones. Raises FigureError for an unknown name."""
    return [_check_choice(kind, choice, existing) for choice in choices] if choices is not None else [*default]
