"""The pages of a static site: figures, each with a few choices, and tables, all from stored results."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product
from typing import Any

from embryo_core import comparison, results
from embryo_core import runs as run_files
from embryo_core.engine.capabilities import run_capabilities
from embryo_core.errors import FigureError
from embryo_core.figures import (
    acquisition,
    compare,
    coverage,
    early_signals,
    findings,
    finetuning,
    finetuning_tables,
    geometry,
    grammar,
    growth,
    knowledge,
    knowledge_facts,
    knowledge_variants,
    ngrams,
    overview,
    phases,
    positions,
    probing,
    probing_layers,
    similarity,
    tokens,
    word_ages,
    word_frequency,
    word_predictors,
    word_tables,
    words,
)
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import designs
from embryo_core.figures.figure import name_measures
from embryo_core.figures.probing_scores import BEST, read_probe_scores, select_layer, task_label
from embryo_core.findings import judge
from embryo_core.findings.words import equivalent_metric
from embryo_core.metrics import METRICS
from embryo_core.site import drawings
from embryo_core.site.parts import FixedTable, Panel, Runs, SitePage
from embryo_core.site.tables import every_fact, every_pair, every_word, words_at_last
from embryo_core.types import Run
from embryo_core.words import layer_name

MAX_WORD_CHOICES = 24  # approximate number of words whose curves can be chosen

# === Training and findings ===


def _overview(runs: Runs, axis: StepAxis) -> SitePage:
    run = runs[0]
    last_checkpoint = run_files.checkpoints(run)[-1]
    watch, model = growth.introduce_run(run, last_checkpoint.step, last_checkpoint.tokens)
    log = overview.training_log(run)
    log_options = {overview.QUANTITIES[name].title: {"quantity": name} for name in overview.logged_quantities(run)}
    measures = positions.measure_table(run)
    masking_options = {} if measures.empty else {name: {"masking": name} for name in positions.maskings(measures)}
    panels: list[Panel | FixedTable] = [
        Panel("growth", drawings.tiles, alone=True),
        Panel(
            "training",
            overview.training_curve,
            {title: options for title, options in log_options.items() if options["quantity"] in log},
            "Quantity",
        ),
        Panel("length", positions.accuracy_by_position, masking_options, "Masked"),
    ]
    if _scored(run, ngrams.METRIC):
        panels.append(Panel("ngrams", ngrams.divergence))
    if _scored(run, positions.COSINE):
        titles = {title: {"metric": metric} for metric, title in positions.TITLES.items()}
        panels.append(Panel("embeddings", positions.positions, titles, "Measure"))
    panels.append(Panel("computed", coverage.coverage, {"": {"capabilities": run_capabilities(run)}}))
    table, caption = phases.phase_changes(run)
    return SitePage(f"{watch}. {model}", [*panels, FixedTable("Phases", table, caption)])


def _findings(runs: Runs, axis: StepAxis) -> SitePage:
    judgements, *other_judgements = [judge(run) for run in runs]
    last_step = max((step for steps in results.steps_by_metric(runs[0]).values() for step in steps), default=0)
    last_planned = max(runs[0].planned_steps, default=0)
    table = findings.finding_table(judgements, other_judgements).drop(columns=["picture", "comparisons"])
    caption = findings.describe_findings(judgements, [run.name for run in runs[1:]])
    choices = {
        judgement.finding.claim: {"name": judgement.finding.name} for judgement in judgements if judgement.comparisons
    }
    return SitePage(
        findings.headline(judgements, last_step, last_planned, runs[0].step_unit),
        [
            FixedTable("Findings of the paper", table, caption),
            Panel("finding", findings.comparisons, choices, "Finding"),
        ],
    )


# === Words ===


def _tokens(runs: Runs, axis: StepAxis) -> SitePage:
    choices, rescaled_choices = {}, {}
    for metric in sorted(candidate.name for candidate in METRICS if candidate.page == "tokens"):
        scores = results.read_scores(runs[0], metric)
        for family, groups in ({} if scores.empty else tokens.category_sets(scores)).items():
            options = {"metric": metric, "groups": tuple(tokens.default_categories(family, groups))}
            choices[f"{tokens.title_of(metric)}, {family}"] = options
            rescaled_choices[f"{tokens.title_of(metric)}, {family}"] = options | {"rescaled": True}
    measured_metric = equivalent_metric(runs[0], "mask_prediction")
    panels = [
        Panel("accuracy", tokens.accuracy, choices, "Task"),
        Panel("rescaled", tokens.accuracy, rescaled_choices, "Task"),
        Panel("acquisition", acquisition.acquisition, choices, "Task"),
    ]
    return SitePage("", [*panels, words_at_last(runs[0], measured_metric)], measured_metric)


def _words(runs: Runs, axis: StepAxis) -> SitePage:
    run = runs[0]
    ages = word_tables.age_table(run)
    default = words.default_word(ages)
    if default is None:
        return SitePage("", [])
    acquired_words = ages.dropna(subset="age").sort_values("age")["word"].tolist()
    interval = -(-len(acquired_words) // MAX_WORD_CHOICES) or 1
    choices = dict.fromkeys([default, *acquired_words[::interval]])
    return SitePage(
        words.headline(ages, axis),
        [
            Panel("word", words.curve, {word: {"word": word} for word in choices}, "Word"),
            Panel("acquired", words.acquired),
            Panel("ages", word_ages.ages),
            Panel("children", word_predictors.children),
            Panel("predictors", word_predictors.predictors),
            Panel("context", word_frequency.distance),
            every_word(run),
        ],
        word_tables.METRIC,
    )


def _grammar(runs: Runs, axis: StepAxis) -> SitePage:
    run, set_names = runs[0], grammar.pair_sets(runs[0])
    if not set_names:
        return SitePage("", [])
    shapes, accuracies = grammar.paradigm_shapes(run, set_names[0]), grammar.accuracy_table(run, set_names[0])
    set_levels = product(set_names, grammar.levels(shapes))
    levels = {f"{pair_set}, {level}": {"pair_set": pair_set, "level": level} for pair_set, level in set_levels}
    paradigm_table = shapes.drop(columns=["group", "fallen"]).assign(turns=grammar.name_turns(shapes, axis))
    paradigms = FixedTable(f"Every paradigm of {set_names[0]}", paradigm_table, grammar.SHAPES_CAPTION)
    order_choices = {pair_set: {"pair_set": pair_set} for pair_set in set_names}
    return SitePage(
        grammar.headline(set_names[0], shapes, accuracies, axis),
        [
            Panel("accuracy", grammar.accuracy, levels, "Pairs"),
            Panel("order", grammar.order_of_rise, order_choices, "Pairs"),
            paradigms,
            *(every_pair(run, pair_set) for pair_set in set_names),
        ],
        grammar.METRIC,
    )


# === Layers and heads ===


def _probing(runs: Runs, axis: StepAxis) -> SitePage:
    frame = read_probe_scores(runs[0])
    if frame.empty:
        return SitePage("", [])
    layer_numbers = sorted(int(layer) for layer in set(frame["layer"]))
    tasks = {task_label(task): {"task": task, "quantity": "f1"} for task in frame["task"].unique()}
    best = select_layer(frame[frame["step"] == frame["step"].max()], BEST).groupby("task")["layer"].first()
    maps = {
        name: options | {"layer": int(best.get(options["task"], layer_numbers[-1]))} for name, options in tasks.items()
    }
    layers = {"best at each step": {"layer": BEST}} | {layer_name(layer): {"layer": layer} for layer in layer_numbers}
    return SitePage(
        probing.headline(select_layer(frame, BEST), axis),
        [
            Panel("layers", probing_layers.layers, tasks, "Task"),
            Panel("heat", probing_layers.heat_map, maps, "Task"),
            Panel("tasks", probing.tasks, layers, "Layer"),
            Panel("expected", probing.expected),
            Panel("peaks", probing_layers.peaks),
        ],
        probing.METRIC,
    )


def _geometry(runs: Runs, axis: StepAxis) -> SitePage:
    run, ranks = runs[0], geometry.measure_table(runs[0], "rank_me")
    if ranks.empty:
        return SitePage("", [])
    choices = {geometry.MEASURES[name].label: {"measure": name} for name in geometry.measured(run)}
    last_layers = {name: options | {"layer": int(ranks["layer"].max())} for name, options in choices.items()}
    panels = [
        Panel("layers", geometry.layers, choices, "Measure"),
        Panel("heat", geometry.heat_map, last_layers, "Measure"),
    ]
    if comparisons := {other_run.name: {"other": other_run.name} for other_run in runs[1:]}:
        panels.append(Panel("similarity", similarity.between, comparisons, "Beside"))
    return SitePage(geometry.headline(ranks, axis), panels)


# === Facts and tasks ===


def _knowledge(runs: Runs, axis: StepAxis) -> SitePage:
    run = runs[0]
    table = knowledge.precision_table(run)
    if table.empty:
        return SitePage("", [])
    relations: dict[str, dict[str, Any]] = {
        "first to show": {"relations": tuple(knowledge.default_relations(table))},
        **{knowledge.relation_label(name): {"relations": (name,)} for name in knowledge.relations_by_precision(table)},
    }
    panels: list[Panel | FixedTable] = [
        Panel("precision", knowledge.precision, relations, "Relations"),
        Panel("panels", knowledge.precision_panels),
    ]
    if _scored(run, knowledge_variants.METRIC):
        panels.append(Panel("variants", knowledge_variants.variants))
    relation, fact = knowledge_facts.first_fact(run)
    if relation:
        panels.append(Panel("fact", knowledge_facts.fact, {"": {"relation": relation, "fact": fact}}))
    all_relations = knowledge_facts.relation_table(run)
    relations_caption = knowledge_facts.describe_relations(results.read_histories(run))
    panels += [FixedTable("Every relation", all_relations, relations_caption), every_fact(run)]
    return SitePage(knowledge.headline(table, axis), panels, knowledge.METRIC)


def _finetuning(runs: Runs, axis: StepAxis) -> SitePage:
    scores = finetuning_tables.read_scores(runs[0])
    if scores.empty:
        return SitePage("", [])
    tasks = [task for task in scores["task"].unique() if task != finetuning_tables.EXACT]
    return SitePage(
        finetuning.headline(scores, axis),
        [Panel("scores", finetuning.scores, {"": {"tasks": tuple(tasks), "panels": True}})],
        "finetuning",
    )


# === Comparisons of runs ===


def _compare(runs: Runs, axis: StepAxis) -> SitePage:
    seeds = {name: [run.name for run in runs_of_design] for name, runs_of_design in designs(runs).items()}
    table = compare.design_table(comparison.designs(runs), seeds)
    design = FixedTable("Design", table, compare.describe_designs(len(runs) > 1))
    if len(runs) < 2:
        return SitePage("", [design])
    groups = tuple(tokens.SETS["parts of speech"])
    measures = ("mask_prediction", "token_reconstruction")
    orders = {name_measures(runs, measure).capitalize(): {"metric": measure, "groups": groups} for measure in measures}
    choice_options = {compare.title_of(choices): {"choices": choices} for choices in compare.changed_choices(runs)}
    signals = {name: {"measure": name} for name in early_signals.common_measures(runs)}
    headline = ""
    with suppress(FigureError):
        agreement = acquisition.agreement(runs, AxisChoice(), measures[0], groups)
        headline = compare.headline(agreement, next(iter(seeds)), name_measures(runs, measures[0]))
    return SitePage(
        headline,
        [
            Panel("differences", compare.differences, choice_options, "Choice"),
            Panel("order", acquisition.acquisition, orders, "Task"),
            Panel("signals", early_signals.early_signals, signals, "Measure"),
            design,
        ],
    )


# name in URLs -> title, function; in the dashboard's order
PAGES: Mapping[str, tuple[str, Callable[[Runs, StepAxis], SitePage]]] = {
    "overview": ("Overview", _overview),
    "findings": ("Findings", _findings),
    "tokens": ("Tokens", _tokens),
    "attention": ("Attention", drawings.attention_page),
    "probing": ("Probing", _probing),
    "geometry": ("Geometry", _geometry),
    "knowledge": ("Knowledge", _knowledge),
    "grammar": ("Grammar", _grammar),
    "words": ("Words", _words),
    "finetuning": ("Fine-tuning", _finetuning),
    "query": ("Query", drawings.query_page),
    "compare": ("Compare", _compare),
}


def _scored(run: Run, metric: str) -> bool:
    return not results.read_scores(run, metric).empty
