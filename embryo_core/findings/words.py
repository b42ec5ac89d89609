"""Section 3: the order in which words are learned, and what determines it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations
from typing import Any

from embryo_core import results
from embryo_core.findings.comparisons import agreement_with_paper, compare_onsets
from embryo_core.findings.evidence import Evidence
from embryo_core.findings.finding import Comparison, Finding, TestOutcome
from embryo_core.groups import BANDS
from embryo_core.types import Run

FUNCTION_CATEGORIES = ("determiner", "preposition", "conjunction", "pronoun")
CONTENT_CATEGORIES = ("verb", "adverb", "adjective", "noun", "proper noun")  # in the paper's order
VERB_FORMS = ("VB", "VBD", "VBG", "VBN", "VBZ")  # tags in the paper's Table 4
RECONSTRUCTION, PREDICTION = WORD_METRICS = ("token_reconstruction", "mask_prediction")
NEXT_PREDICTION = "next_word_prediction"  # replaces PREDICTION for decoders
PREDICTIONS = (PREDICTION, NEXT_PREDICTION)
SHORT_NAMES = {RECONSTRUCTION: "reconstruction", PREDICTION: "prediction", NEXT_PREDICTION: "next-word prediction"}
PAPER_SECTIONS = {
    RECONSTRUCTION: "Section 3, Figure 1a",
    PREDICTION: "Section 3, Figure 1b",
    NEXT_PREDICTION: "Section 3, Figure 1b",
}
NEEDS = {name: frozenset({"next_words" if name == NEXT_PREDICTION else "masked_words"}) for name in SHORT_NAMES}
COMMAND = "evaluate --treebank PATH"


def equivalent_metric(run: Run, metric: str) -> str:
    """Return the run's equivalent of a metric: decoders have next-word prediction instead of mask prediction."""
    if metric not in PREDICTIONS:
        return metric
    stored_metrics = results.read_metrics(run)
    return next((name for name in (metric, *PREDICTIONS) if name in stored_metrics), metric)


def reconstruction_first(evidence: Evidence) -> TestOutcome:
    """Compare the onsets of reconstruction and prediction in every category."""
    pairs = ((name, (RECONSTRUCTION, name), (PREDICTION, name)) for name in (*FUNCTION_CATEGORIES, *CONTENT_CATEGORIES))
    return TestOutcome(_compare_curves(evidence, pairs))


def function_words_first(evidence: Evidence, task: str) -> TestOutcome:
    """Compare the onset of every category of function words with that of every category of content words."""
    return TestOutcome(
        _compare_pairs(
            evidence, task, [(first, second) for first in FUNCTION_CATEGORIES for second in CONTENT_CATEGORIES]
        )
    )


def order_of_content_words(evidence: Evidence, task: str) -> TestOutcome:
    """Compare the onsets of every two content-word categories, and add the rank agreement with the paper's order."""
    onsets = {
        name: curve.onset()
        for name in (*FUNCTION_CATEGORIES, *CONTENT_CATEGORIES)
        if (curve := evidence.curve(task, name))
    }
    onset_steps = {name: onset.step for name, onset in onsets.items() if onset}
    paper_order = list(paper_ranks(onset_steps).values())
    return TestOutcome(
        _compare_pairs(evidence, task, combinations(CONTENT_CATEGORIES, 2)),
        agreement_with_paper(list(onset_steps.values()), paper_order),
    )


def paper_ranks(names: Iterable[str]) -> dict[str, int]:
    """Return the ranks of categories in the paper's order, 0 for function words; unknown names are left out."""
    return {
        name: 0 if name in FUNCTION_CATEGORIES else 1 + CONTENT_CATEGORIES.index(name)
        for name in names
        if name in (*FUNCTION_CATEGORIES, *CONTENT_CATEGORIES)
    }


def frequent_verb_forms_first(evidence: Evidence, task: str) -> TestOutcome:
    """Compare the onsets of every two verb forms; the more frequent one in the training corpus should be first."""
    if not evidence.frequencies:
        return _without_counts(evidence)
    if not (frequencies := mean_frequencies(evidence, task)):
        return TestOutcome([])
    forms = sorted(frequencies, key=frequencies.__getitem__, reverse=True)
    listing = ", ".join(f"{form} {frequencies[form]:,.0f}" for form in forms)
    return TestOutcome(
        _compare_pairs(evidence, task, combinations(forms, 2)), f"Mean frequency of their words: {listing}."
    )


def frequent_bands_first(evidence: Evidence, tasks: Sequence[str]) -> TestOutcome:
    """Compare the onsets of every two frequency bands in each task."""
    if not evidence.frequencies and not any({*BANDS} & {*evidence.groups(task)} for task in tasks):
        return _without_counts(evidence)
    by_task = (_compare_pairs(evidence, task, combinations(BANDS, 2), SHORT_NAMES[task]) for task in tasks)
    return TestOutcome([*chain.from_iterable(by_task)])


def _without_counts(evidence: Evidence) -> TestOutcome:
    """Return the outcome if pretraining counted no words; no command adds the counts."""
    statistic = f"No words of its training text were counted ({evidence.run.frequencies.name})."
    return TestOutcome([], statistic, final=True)


def mean_frequencies(evidence: Evidence, task: str) -> dict[str, float]:
    """Return the mean frequency in the training corpus of each verb form's words, weighted by their treebank counts.

    Words that the corpus lacks have frequency 0. Empty if pretraining counted no words, or the task has no scores.
    """
    counts = evidence.frequencies
    steps = evidence.scores(task)["step"]
    if not counts or steps.empty:
        return {}
    means = {}
    for form in VERB_FORMS:
        words = results.read_words(evidence.run, task, form, int(steps.max()))
        if len(words):
            occurrences = words["word"].map(lambda word: counts.get(word, counts.get(word.lower(), 0)))
            means[form] = float((occurrences * words["n"]).sum() / words["n"].sum())
    return means


def _compare_pairs(evidence: Evidence, task: str, pairs: Iterable[tuple[str, str]], note: str = "") -> list[Comparison]:
    """Compare the onsets of each pair of groups: by how many checkpoints the first precedes the second."""
    suffix = f", {note}" if note else ""
    named = ((f"{first} before {second}{suffix}", (task, first), (task, second)) for first, second in pairs)
    return _compare_curves(evidence, named)


def _compare_curves(
    evidence: Evidence, pairs: Iterable[tuple[str, tuple[str, str], tuple[str, str]]]
) -> list[Comparison]:
    """Compare the onsets of each label's two curves, given by task and group; leave out pairs without a comparison."""
    comparisons = []
    for label, *keys in pairs:
        first, second = (evidence.curve(*key) for key in keys)
        if first and second:
            comparisons.append(compare_onsets(label, first, second, (first.onset(), second.onset())))
    return [comparison for comparison in comparisons if comparison]


def _findings_of(task: str) -> list[Finding]:
    """Return the paper's findings on one task; those on next-word prediction have the names of mask prediction."""
    common_fields: dict[str, Any] = {
        "section": PAPER_SECTIONS[task],
        "page": "Tokens",
        "metrics": (task,),
        "command": COMMAND,
    }
    common_fields |= {"needs": NEEDS[task], "measure": SHORT_NAMES[task]}
    categories: dict[str, Any] = {"view": {"metric": task, "family": "parts of speech"}}
    short_name = SHORT_NAMES[task]
    name = SHORT_NAMES[PREDICTION if task == NEXT_PREDICTION else task]
    return [
        Finding(
            name=f"function_words_{name}",
            claim=f"Function words are learned before content words ({short_name}).",
            predicts="The onset of each function category precedes that of each content category.",
            test=partial(function_words_first, task=task),
            **common_fields | categories,
        ),
        Finding(
            name=f"content_words_{name}",
            claim=f"Content words come in the paper's order ({short_name}).",
            predicts="Verb, adverb, adjective, noun, proper noun: the onset of each precedes those of the later ones.",
            test=partial(order_of_content_words, task=task),
            **common_fields | categories,
        ),
        Finding(
            name=f"verb_forms_{name}",
            claim=f"Frequent verb forms are learned first ({short_name}).",
            predicts="Of two forms, the onset of the one with the more frequent words comes first.",
            test=partial(frequent_verb_forms_first, task=task),
            **common_fields
            | {"section": "Section 3, Figure 1c, Table 4", "view": {"metric": task, "family": "verb forms"}},
        ),
    ]


def _frequent_words(tasks: tuple[str, ...]) -> Finding:
    """Return the finding on frequency bands, for the tasks of masked language models or of decoders."""
    return Finding(
        name="frequent_words",
        claim="Frequent words are learned before rare ones"
        + (f" ({SHORT_NAMES[NEXT_PREDICTION]})." if NEXT_PREDICTION in tasks else "."),
        section="Section 3, Figures 7 and 8",
        predicts="Of two bands of frequency, the onset of the more frequent one comes first.",
        page="Tokens",
        view={"family": "frequency bands"},
        metrics=tasks,
        command=COMMAND,
        test=partial(frequent_bands_first, tasks=tasks),
        needs=NEEDS[tasks[0]],
        measure=" and ".join(SHORT_NAMES[task] for task in tasks),
    )


FINDINGS = (
    Finding(
        name="reconstruction_before_prediction",
        claim="A model learns to reconstruct words before it learns to predict them.",
        section="Section 3, Figure 1",
        predicts="In each category the onset of reconstruction precedes that of prediction.",
        page="Tokens",
        view={},
        metrics=WORD_METRICS,
        command=COMMAND,
        test=reconstruction_first,
        needs=NEEDS[RECONSTRUCTION],
    ),
    *_findings_of(RECONSTRUCTION),
    *(
        replace(finding, otherwise=alternative)
        for finding, alternative in zip(_findings_of(PREDICTION), _findings_of(NEXT_PREDICTION), strict=True)
    ),
    replace(_frequent_words(WORD_METRICS), otherwise=_frequent_words((NEXT_PREDICTION,))),
)
