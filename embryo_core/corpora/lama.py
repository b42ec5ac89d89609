"""Read the facts of LAMA's T-REx: relations with templates, subjects and objects (Section 6)."""

from pathlib import Path
from typing import Any

from embryo_core.corpora.data_files import OPENERS, read_json_lines, split_file, without_compression
from embryo_core.errors import CorpusError
from embryo_core.types import Fact

# The 25 relations of the paper's Table 8.
NUMBERS = (17, 19, 20, 30, 36, 37, 103, 127, 131, 136, 138, 140, 159, 176, 264, 276, 279, 361, 364, 407, 413, 449, 495)
RELATIONS = tuple(f"P{number}" for number in (*NUMBERS, 740, 1376))


def read_lama(path: Path) -> list[Fact]:
    """Read the facts of each relation with a template in relations.jsonl and a file (TREx/P19.jsonl) in a LAMA folder.

    The paper's relations come first, in the order of Table 8, then others in the order of their templates. Repeated
    facts count once. Raises CorpusError, also for a file whose relation has no template.
    """
    templates = _read_templates(path)
    found = sorted(one for suffix in ("", *OPENERS) for one in (path / "TREx").glob(f"*.jsonl{suffix}"))
    files = {without_compression(file.name).removesuffix(".jsonl"): file for file in found}
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
    """Read the template of each relation."""
    try:
        path = split_file(folder, "relations.jsonl")
    except CorpusError:
        raise CorpusError(
            f"{folder / 'relations.jsonl'} does not exist; add it with a line for each relation, such as "
            '{"relation": "P19", "template": "[X] was born in [Y] ."}, or run: python -m embryo_core fetch lama'
        ) from None
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
    """Parse one fact."""
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
