"""`make demo-tables`: write data/demo/tables.md from the runs and results of the demo.

The page has a section for each reference run and each small run of another family, and one table of the small ALBERTs.
Accuracies have their n and baselines next to them.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from embryo_core import runs
from embryo_core.figures.findings import verdict_name
from embryo_core.figures.knowledge_variants import KINDS as KINDS_OF_QUESTIONS
from embryo_core.figures.knowledge_variants import RIGHT
from embryo_core.groups import PARTS_OF_SPEECH
from embryo_core.study import Study
from tools.markdown_tables import cell, header, interval_header, interval_row, line, row, table_steps

DEMO = Path(__file__).resolve().parents[1] / "data" / "demo"
PAGE = DEMO / "tables.md"
HEAD = """# Tables of the demo runs

Written by `make demo-tables` from the runs and results in this folder. A column is a step: step 0 and some of the last.
n is the number of cases (words, facts, pairs, masked pieces, ...) behind every figure of a row. The dashboard shows all
steps, groups and layers.
"""
DESIGNS = "## Design choices"
DESIGN_COLUMNS = "run|step|tokens|loss|accuracy|n|other objective|n|prediction|reconstruction|n".split("|")
SINGLE_PIECES = "single pieces 15 %"  # name of a masking in the log
# task of edge probing -> name in the table
TASKS = {"pos": "part of speech", "constituent": "constituent", "srl": "semantic role", "coref": "coreference"}
KINDS = {  # objective -> name in the tables
    "masked_lm": "masked pieces",
    "sentence_order": "sentence order",
    "next_sentence": "next sentence",
    "replaced_token": "replaced tokens",
    "next_token": "next pieces",
}
COUNTED = {"masked_lm": "n_masked", "next_token": "n_predicted"}  # objective -> column of n; the rest count sequences
WORDS = {  # metric -> name of its baseline, and the baseline's value if it is the same for all words
    "token_reconstruction": ("most frequent word", None),
    "mask_prediction": ("most frequent word", None),
    "next_word_prediction": ("most frequent word", None),
    "replaced_token_accuracy": ("a coin, words of one piece", 0.25),
}
# metric -> name in the table
VARIANTS = {f"lama_variants_{kind}": name for kind, (name, _, _) in KINDS_OF_QUESTIONS.items() if kind != RIGHT}


def main() -> None:
    """Write data/demo/tables.md."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page for the current runs and results."""
    studies = [Study(path) for path in sorted((DEMO / "runs").iterdir())]
    alberts = [study for study in studies if study.run.family == "albert"]
    design_choices = [study for study in alberts if study.scores("world_knowledge").empty]
    lines = [line for study in studies if study not in design_choices for line in section(study)]
    return "\n".join([HEAD, *lines, *designs(design_choices), ""])


def section(study: Study) -> Iterator[str]:
    """Yield the lines of one run's section: its sizes and all tables that it has results for."""
    yield f"## {study.run.name}"
    yield ""
    yield from sizes(study)
    for table in (heldout, by_position, objectives, words, pairs, probing, geometry, facts, variants, tasks, findings):
        if lines := list(table(study)):
            yield from [*lines, ""]


def designs(studies: Iterable[Study]) -> Iterator[str]:
    """Yield the lines of one table of runs that differ in a design choice, at their last steps."""
    yield DESIGNS
    yield ""
    yield (
        "One change each to `small`, by run and seed, at the last step. Loss (nats) and accuracy are of held-out text "
        "with 15 % of single pieces masked; prediction and reconstruction are of all words of the treebank."
    )
    yield ""
    yield line(*DESIGN_COLUMNS)
    yield line(*["---"] * len(DESIGN_COLUMNS))
    for study in studies:
        last, measure = runs.checkpoints(study.run)[-1], last_measure(study)
        second = next((name for name in KINDS if f"{name}_accuracy" in measure), None)
        objective = f"{KINDS[second]} {measure[f'{second}_accuracy']:.3f}" if second else "none"
        second_n = f"{measure[f'{second}_n']:,}" if second else ""
        accuracies = [all_words(study, metric) for metric in ("mask_prediction", "token_reconstruction")]
        yield line(
            *(f"`{study.run.name}`", f"{last.step:,}", f"{(last.tokens or 0) / 1e6:.1f} M"),
            *(f"{measure['loss']:.2f}", cell(measure["accuracy"]), f"{measure['n']:,}", objective, second_n),
            *(cell(value) for value, _ in accuracies),
            f"{accuracies[0][1]:,}",
        )


def last_measure(study: Study) -> dict[str, Any]:
    """Return the last measure of a run's log on held-out text with single pieces masked."""
    measures = (measure for row in runs.read_log(study.run) for measure in row.get("measures", []))
    return [measure for measure in measures if measure["masking"] == SINGLE_PIECES][-1]


def all_words(study: Study, metric: str) -> tuple[float, int]:
    """Return accuracy and n over all words at the last evaluated step."""
    last = study.scores(metric).query("group == 'all'").sort_values("step").iloc[-1]
    return float(last["value"]), int(last["n"])


def sizes(study: Study) -> Iterator[str]:
    """Yield the numbers of checkpoints, tokens and bytes of a run."""
    checkpoints = runs.checkpoints(study.run)
    weights, results = (size(DEMO / folder_name / study.run.name) for folder_name in ("runs", "results"))
    steps = [f"{checkpoint.step:,}" for checkpoint in checkpoints if checkpoint.has_weights]
    with_weights = f"{len(steps)} of them with weights ({', '.join(steps)})" if steps else "none of them with weights"
    yield (
        f"{len(checkpoints)} checkpoints, {with_weights}; {checkpoints[-1].tokens or 0:,} tokens read by step "
        f"{checkpoints[-1].step:,}. The run takes {weights / 1e6:.0f} MB, its results {results / 1e6:.0f} MB."
    )
    yield ""


def size(folder: Path) -> int:
    """Return the size in bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def heldout(study: Study) -> Iterator[str]:
    """Yield the accuracy of every objective on held-out text, masked as in training."""
    log = study.log()
    rows = log[log["split"] == "heldout"].set_index("step")
    steps = table_steps(rows.index)
    yield from header("held-out accuracy, as in training", steps, "n")
    for name, words in KINDS.items():
        if f"{name}_accuracy" not in rows:
            continue
        counts = rows[COUNTED.get(name, "n_sequences")]
        if name == "replaced_token":  # its n counts tokens; the log has it in the first measure of each row
            counts = rows["measures"].map(lambda measures: measures[0]["replaced_token_n"])
        n = int(counts.iloc[-1])
        yield row(words, rows[f"{name}_accuracy"].reindex(steps), n)
        if f"{name}_baseline" in rows:
            yield row(f"{words}, always “original”", rows[f"{name}_baseline"].reindex(steps), n)


def by_position(study: Study) -> Iterator[str]:
    """Yield masked accuracy at the last step by masking, length and position, for the largest sample."""
    measures = runs.read_measures(study.run)
    last = [measure for measure in measures if measure.step == measures[-1].step]
    if not last:
        return
    largest: dict[tuple[str, int], int] = {}
    for group in sorted(last, key=lambda group: group.sample):
        largest[group.masking, group.length] = group.sample
    yield from interval_header(f"held-out pieces at step {last[0].step:,}", "positions")
    for group in last:
        if group.sample == largest[group.masking, group.length]:
            positions = f"{group.first} to {group.last}"
            yield interval_row(group.masking, group.length, [positions], group.accuracy, group.n)


def objectives(study: Study) -> Iterator[str]:
    """Yield the accuracy of the other objectives at the last step by masking and length, for the largest sample."""
    *_, last = [{}, *(row for row in runs.read_log(study.run) if row.get("measures"))]
    for name in (name for name in KINDS if name != "masked_lm"):
        measures = [measure for measure in last.get("measures", []) if f"{name}_accuracy" in measure]
        largest = {
            (measure["masking"], measure["length"]): measure
            for measure in sorted(measures, key=lambda measure: measure["n"])
        }
        baselines = ["always “original”"] if any(f"{name}_baseline" in measure for measure in measures) else []
        if largest:
            yield from interval_header(f"{KINDS[name]} at step {last['step']:,}", *baselines)
        for measure in measures:
            if measure is largest[measure["masking"], measure["length"]]:
                always = [cell(measure[f"{name}_baseline"])] if baselines else []
                yield interval_row(
                    measure["masking"], measure["length"], always, measure[f"{name}_accuracy"], measure[f"{name}_n"]
                )


def words(study: Study) -> Iterator[str]:
    """Yield accuracy on words by part of speech, with the baseline: the most frequent word, or a coin toss."""
    tables = {metric: scores for metric in WORDS if len(scores := study.scores(metric))}
    for i, (metric, scores) in enumerate(tables.items()):
        if i:
            yield ""
        baseline_name, value = WORDS[metric]
        frequent, steps = study.baselines(metric).set_index("group")["value"], table_steps(scores["step"].unique())
        yield from header(metric.replace("_", " "), steps, baseline_name, "n")
        for group in PARTS_OF_SPEECH:
            of_group = scores[scores["group"] == group].set_index("step")
            baseline = frequent.get(group) if value is None else value
            if len(of_group):
                yield row(group, of_group["value"].reindex(steps), baseline, int(of_group["n"].iloc[-1]))


def probing(study: Study) -> Iterator[str]:
    """Yield F1 of edge probing in the layer that is best at the last step, with majority baseline and control task."""
    if study.scores("edge_probing").empty:
        return
    scores = study.scores("edge_probing_f1")
    steps = table_steps(scores["step"].unique())
    yield from header("edge probing, F1", steps, "majority", f"control, {steps[-1]:,}", "n")
    controls, majorities = (study.scores(f"edge_probing_{name}") for name in ("control", "majority"))
    for task, name in TASKS.items():
        of_task = scores[scores["group"] == task]
        if of_task.empty:
            continue
        last = of_task[of_task["step"] == steps[-1]]
        best = last.loc[last["value"].idxmax()]
        values = of_task[of_task["layer"] == best["layer"]].set_index("step")["value"].reindex(steps)
        at_last = [table[(table["group"] == task) & (table["step"] == steps[-1])] for table in (majorities, controls)]
        majority, control = at_last[0]["value"].iloc[0], at_last[1].set_index("layer")["value"].get(best["layer"])
        layer = f"layer {best['layer']:.0f}" if best["layer"] else "embeddings"
        yield row(f"{name}, {layer}", values, majority, control, int(best["n"]))


def facts(study: Study) -> Iterator[str]:
    """Yield precision at 1 over all facts, with the baseline: the most frequent object of each relation."""
    scores = study.scores("world_knowledge")
    all_facts = scores[scores["group"] == "all"].set_index("step")
    if all_facts.empty:
        return
    steps = table_steps(all_facts.index)
    baselines = study.baselines("world_knowledge").set_index("group")
    relations = baselines.drop(index="all", errors="ignore")
    frequent = (relations["value"] * relations["n"]).sum() / relations["n"].sum()
    yield from header("LAMA, precision at 1", steps, "most frequent object", "n")
    yield row("all facts", all_facts["value"].reindex(steps), frequent, int(all_facts["n"].iloc[-1]))


def pairs(study: Study) -> Iterator[str]:
    """Yield accuracy on minimal pairs by set and phenomenon, with the baseline: a coin toss."""
    scores = study.scores("minimal_pairs")
    scores = scores[scores["group"].str.count("/") < 2]
    if scores.empty:
        return
    steps = table_steps(scores["step"].unique())
    yield from header("minimal pairs", steps, "a coin", "n")
    for group, of_group in scores.groupby("group"):
        yield row(group, of_group.set_index("step")["value"].reindex(steps), 0.5, int(of_group["n"].iloc[-1]))


def geometry(study: Study) -> Iterator[str]:
    """Yield the effective rank and the mean cosine of the states of words, by layer."""
    for metric, name in (("geometry_rank_me", "effective rank"), ("geometry_anisotropy", "mean cosine")):
        scores = study.scores(metric)
        if scores.empty:
            return
        steps = table_steps(scores["step"].unique())
        yield from ([""] if metric == "geometry_anisotropy" else [])
        yield from header(f"{name} of the states", steps, "words")
        for layer, of_layer in scores.groupby("layer"):
            values = of_layer.set_index("step")["value"].reindex(steps)
            name = f"layer {layer:.0f}" if layer else "embeddings"
            yield row(name, values, int(of_layer["n"].iloc[-1]))


def variants(study: Study) -> Iterator[str]:
    """Yield results on variants of the facts answered right: paraphrased, negated, or after a wrong word."""
    if study.scores("lama_variants").empty:
        return
    tables = {name: study.scores(metric) for metric, name in VARIANTS.items()}
    tables = {name: table[table["group"] == "all"].set_index("step") for name, table in tables.items() if len(table)}
    if not tables:
        return
    steps = table_steps({step for table in tables.values() for step in table.index})
    yield from header("of the facts answered right", steps, f"n at {steps[-1]:,}")
    for name, table in tables.items():
        yield row(name, table["value"].reindex(steps), int(table["n"].iloc[-1]))


def tasks(study: Study) -> Iterator[str]:
    """Yield scores of fine-tuned checkpoints, the mean over seeds, with the majority or mean predictor."""
    scores = study.task_scores()
    if scores.empty:
        return
    model_scores = scores[scores["predictor"] == "model"]
    steps = table_steps(model_scores["step"].unique())
    yield from header("fine-tuning, mean over seeds", steps, "majority or mean", "seeds", "n")
    for (task, metric), of_task in model_scores.groupby(["task", "metric"], sort=False):
        controls = scores[(scores["task"] == task) & (scores["metric"] == metric) & (scores["predictor"] != "model")]
        values = of_task.groupby("step")["value"].mean().reindex(steps)
        baseline = controls["value"].max() if len(controls) else None
        yield row(f"{task}, {metric}", values, baseline, of_task["seed"].nunique(), int(of_task["n"].iloc[-1]))


def findings(study: Study) -> Iterator[str]:
    """Yield the verdicts of the Findings page."""
    yield line("finding of the paper", "verdict", "comparisons that hold", "opposed")
    yield line(*["---"] * 4)
    for finding in study.findings().itertuples():
        yield line(
            finding.claim.rstrip("."), verdict_name(finding.verdict), f"{finding.hold} of {finding.of}", finding.opposed
        )


if __name__ == "__main__":
    main()
