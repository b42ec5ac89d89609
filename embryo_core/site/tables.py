"""Tables of a static site, which do not change with the step; long ones are loaded and searched on demand."""

import pandas as pd

from embryo_core import results
from embryo_core.figures import grammar_pairs, knowledge, knowledge_facts, tokens, word_tables, words
from embryo_core.figures.figure import Caption
from embryo_core.figures.grammar import group_label
from embryo_core.groups import describe_tag
from embryo_core.site.parts import FixedTable
from embryo_core.types import Run
from embryo_core.words import name_step, quantity

FACT_COLUMNS = {  # column -> heading
    "relation": "relation",
    "subject": "subject",
    "object": "true object",
    "prediction": "answer",
    "prediction_probability": "p(answer)",
    "rank": "rank",
    "probability": "p(object)",
    "history": "history",
    "first": "first right",
}


def every_word(run: Run) -> FixedTable:
    """Return the words of the list with their ages of acquisition, as on the Words page."""
    ages = word_tables.age_table(run)
    table = word_tables.list_words(ages)
    return FixedTable("Every word", table, words.describe_words(ages, table), alone=True)


def words_at_last(run: Run, metric: str) -> FixedTable:
    """Return the words of all categories at the last evaluated step, as on the Tokens page; empty without results."""
    step = _last_step(run, metric)
    title = f"Words behind {tokens.title_of(metric).lower()}"
    words = results.read_words(run, metric, step=step)
    if words.empty:
        return FixedTable(title, words, Caption(""), alone=True)
    words = (
        tokens.merge_case(words, tokens.is_cased(run)).groupby(["word", "tag"], as_index=False)[["n", "correct"]].sum()
    )
    words = words.assign(tag=words["tag"].map(describe_tag), accuracy=words["correct"] / words["n"])
    words = words.sort_values(["n", "word"], ascending=[False, True])
    caption = tokens.describe_words(words, words)
    return FixedTable(f"{title} at {name_step(step, run.step_unit)}", words, Caption(caption.summary), alone=True)


def every_fact(run: Run) -> FixedTable:
    """Return the facts of all relations at the last evaluated step, as on the Knowledge page."""
    step = _last_step(run, knowledge.METRIC)
    facts, facts_of_relations = results.read_histories(run), []
    for relation in facts["relation"].unique():
        answers = results.read_cloze(run, relation, step=step)
        at_step = knowledge_facts.facts_at(answers, facts[facts["relation"] == relation])
        facts_of_relations.append(at_step.drop(columns="fact").assign(relation=knowledge.relation_label(relation)))
    table = pd.concat(facts_of_relations, ignore_index=True) if facts_of_relations else pd.DataFrame()
    if table.empty:
        return FixedTable("Every fact", table, Caption(""), alone=True)
    right = quantity(int((table["rank"] == 1).sum()), "fact")
    table = table[[*FACT_COLUMNS]].rename(columns=FACT_COLUMNS)
    caption = Caption(f"{right} of {len(table):,} answered correctly at {name_step(step, run.step_unit)}.")
    return FixedTable("Every fact", table, caption, alone=True)


def every_pair(run: Run, pair_set: str) -> FixedTable:
    """Return the minimal pairs of all paradigms of a set at the last evaluated step, without their sentences."""
    scores = results.read_pair_scores(run)
    step = int(scores["step"].max()) if len(scores) else 0
    paradigms = [paradigm for paradigm in scores["paradigm"].unique() if paradigm.startswith(f"{pair_set}/")]
    pairs_of_paradigms = [
        grammar_pairs.pairs_at(run, paradigm, step).assign(paradigm=group_label(paradigm)) for paradigm in paradigms
    ]
    table = pd.concat(pairs_of_paradigms, ignore_index=True) if pairs_of_paradigms else pd.DataFrame()
    if len(table):
        table = table[["paradigm", "pair", "difference", "good_score", "bad_score", "right", "history"]]
    caption = Caption(f"Scores at {name_step(step, run.step_unit)} in nats; results hold no sentences.")
    return FixedTable(f"Every pair of {pair_set}", table, caption, alone=True)


def _last_step(run: Run, metric: str) -> int:
    return max(results.read_scores(run, metric)["step"], default=0)
