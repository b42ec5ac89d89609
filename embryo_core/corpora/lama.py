"""Readers of the facts of LAMA's T-REx (Section 6), and of their variants: negations, paraphrases, wrong words.

Negations and wrong words: Kassner and Schütze (2020), "Negated and Misprimed Probes for Pretrained Language Models".
Paraphrases: Elazar et al. (2021), "Measuring and Improving Consistency in Pretrained Language Models" (ParaRel).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embryo_core.corpora.data_files import OPENERS, find_file, read_json_lines, without_compression
from embryo_core.errors import CorpusError
from embryo_core.types import Fact

RELATIONS = tuple(  # the 25 relations of the paper's Table 8
    "P17 P19 P20 P30 P36 P37 P103 P127 P131 P136 P138 P140 P159 P176 P264 P276 P279 P361 P364 P407 P413 P449 P495 "
    "P740 P1376".split()
)
VARIANT_FILES = NEGATED, PARAPHRASES, MISPRIMED = "negated_templates.jsonl", "pararel_patterns.jsonl", "misprimed.jsonl"
VARIANTS_FORM = f"folder with {NEGATED}, {PARAPHRASES} or {MISPRIMED}"
PRIMES = ("high", "low", "random")  # kinds of wrong words, by their similarity to the object


def read_lama(path: Path) -> list[Fact]:
    """Read the facts of each relation with a template in relations.jsonl and a file (TREx/P19.jsonl) in a LAMA folder.

    The paper's relations come first, in the order of Table 8, then other relations in the order of their templates.
    Repeated facts count once. Raises CorpusError, also for a file whose relation has no template.
    """
    templates = _read_templates(path)
    paths = sorted(file for suffix in ("", *OPENERS) for file in (path / "TREx").glob(f"*.jsonl{suffix}"))
    files = {without_compression(file.name).removesuffix(".jsonl"): file for file in paths}
    for relation in files.keys() - templates.keys():
        raise CorpusError(
            f"{files[relation]} has no template; add a line to {path / 'relations.jsonl'}, such as: "
            f'{{"relation": "{relation}", "template": "[X] was born in [Y] ."}}'
        )
    facts: dict[str, Fact] = {}
    listed = [name for name in RELATIONS if name in files]
    for relation in (*listed, *(name for name in templates if name in files.keys() - {*listed})):
        for location, row in read_json_lines(files[relation]):
            fact = _fact(location, row, relation, templates[relation])
            if facts.setdefault(fact.id, fact) != fact:
                raise CorpusError(
                    f"{location}: the uuid {fact.id} belongs to another fact already; ids must be unique."
                )
    if not facts:
        raise CorpusError(
            f"{path} has no facts; add TREx/RELATION.jsonl for a relation of relations.jsonl, or fetch the paper's "
            "25: python -m embryo_core fetch lama"
        )
    return list(facts.values())


def _read_templates(folder: Path) -> dict[str, str]:
    """Read the template of each relation. Raises CorpusError if the file is missing or a template malformed."""
    if (path := find_file(folder, "relations.jsonl")) is None:
        raise CorpusError(
            f"{folder / 'relations.jsonl'} does not exist; add it with a line for each relation, such as "
            '{"relation": "P19", "template": "[X] was born in [Y] ."}, or run: python -m embryo_core fetch lama'
        )
    templates = {}
    for location, row in read_json_lines(path):
        try:
            templates[row["relation"]] = row["template"]
            well_formed = row["template"].count("[X]") == row["template"].count("[Y]") == 1
        except (KeyError, TypeError, AttributeError) as reason:
            raise CorpusError(f'{location}: expected {{"relation": ..., "template": ...}} ({reason!r}).') from None
        if not well_formed:
            raise CorpusError(f"{location}: a template needs one [X] and one [Y], received {row['template']!r}.")
    return templates


def _fact(location: str, row: dict[str, Any], relation: str, template: str) -> Fact:
    """Parse one row as a fact; a row without a uuid gets an id from its labels. Raises CorpusError."""
    try:
        subject, object = row["sub_label"], row["obj_label"]
    except KeyError as missing:
        raise CorpusError(f"{location}: a fact needs sub_label and obj_label, this one lacks {missing}.") from None
    fact_id = row.get("uuid") or f"{relation}/{subject}/{object}"
    if not all(isinstance(text, str) for text in (fact_id, subject, object)):
        raise CorpusError(
            f"{location}: sub_label, obj_label and uuid of a fact must be strings, received {str(row)[:60]}."
        )
    return Fact(fact_id, relation, template, subject, object)


# === Variants ===


@dataclass
class Variants:
    """Other templates of each relation, and the wrong words of each fact by their kind in PRIMES."""

    negated: dict[str, str] = field(default_factory=dict)
    paraphrases: dict[str, list[str]] = field(default_factory=dict)
    # (relation, subject, object) -> kind -> wrong word
    primes: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)


def read_variants(folder: Path) -> Variants:
    """Read whichever of the three files a folder has. Raises CorpusError if it has none, or for a malformed line.

    A space is put before a full stop, as in LAMA's templates, so that a paraphrase differs only in its words.
    """
    files = {name: find_file(folder, name) for name in VARIANT_FILES}
    if not any(files.values()):
        raise CorpusError(f"{folder} has none of {', '.join(VARIANT_FILES)} (or .xz, .gz); give a {VARIANTS_FORM}.")
    variants = Variants()
    for location, row in _rows(files[NEGATED]):
        variants.negated[_text(location, row, "relation")] = _template(location, row, "template_negated")
    for location, row in _rows(files[PARAPHRASES]):
        paraphrases = variants.paraphrases.setdefault(_text(location, row, "relation"), [])
        if (pattern := _template(location, row, "pattern")) not in paraphrases:
            paraphrases.append(pattern)
    for location, row in _rows(files[MISPRIMED]):
        relation, subject, answer = (_text(location, row, name) for name in ("relation", "sub_label", "obj_label"))
        words = {kind: _text(location, row, f"prime_{kind}") for kind in PRIMES if row.get(f"prime_{kind}") is not None}
        variants.primes[relation, subject, answer] = words
    return variants


def _rows(path: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    return read_json_lines(path) if path else iter(())


def _text(location: str, row: dict[str, Any], name: str) -> str:
    """Return the text of a column. Raises CorpusError if it is missing or blank."""
    if not isinstance(text := row.get(name), str) or not text.strip():
        raise CorpusError(f"{location}: {name} must be a string that is not blank, received {str(text)[:60]!r}.")
    return text.strip()


def _template(location: str, row: dict[str, Any], name: str) -> str:
    """Return the template of a column, with a space before its full stop. Raises CorpusError."""
    template = _text(location, row, name)
    if not template.count("[X]") == template.count("[Y]") == 1:
        raise CorpusError(f"{location}: a template needs one [X] and one [Y], received {template[:60]!r}.")
    return template[:-1].rstrip() + " ." if template.endswith(".") else template
