"""Read other ways to ask LAMA's facts: negated templates, paraphrases, and wrong words to put before a question.

Negations and wrong words: Kassner and Schütze (2020), "Negated and Misprimed Probes for Pretrained Language Models".
Paraphrases: Elazar et al. (2021), "Measuring and Improving Consistency in Pretrained Language Models" (ParaRel).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embryo_core.corpora.data_files import OPENERS, read_json_lines
from embryo_core.errors import CorpusError

NAMES = NEGATED, PARAPHRASES, MISPRIMED = "negated_templates.jsonl", "pararel_patterns.jsonl", "misprimed.jsonl"
FORM = f"folder with {NEGATED}, {PARAPHRASES} or {MISPRIMED}"
PRIMES = ("high", "low", "random")  # how similar a wrong word is to the object


@dataclass
class Variants:
    """Templates of each relation, and the wrong words of each fact by their kind in PRIMES."""

    negated: dict[str, str] = field(default_factory=dict)
    paraphrases: dict[str, list[str]] = field(default_factory=dict)
    primes: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)  # by relation, subject, object


def read_variants(folder: Path) -> Variants:
    """Read the files that a folder has of the three. Raises CorpusError if it has none, or for a line of another form.

    A full stop has a blank before it, as in LAMA's templates, so that a paraphrase differs in its words alone.
    """
    places = {name: [folder / f"{name}{suffix}" for suffix in ("", *OPENERS)] for name in NAMES}
    found = {name: next((path for path in own if path.is_file()), None) for name, own in places.items()}
    if not any(found.values()):
        raise CorpusError(f"{folder} has none of {', '.join(NAMES)} (or .xz, .gz); give a {FORM}.")
    variants = Variants()
    for location, row in _rows(found[NEGATED]):
        variants.negated[_text(location, row, "relation")] = _template(location, row, "template_negated")
    for location, row in _rows(found[PARAPHRASES]):
        own = variants.paraphrases.setdefault(_text(location, row, "relation"), [])
        if (pattern := _template(location, row, "pattern")) not in own:
            own.append(pattern)
    for location, row in _rows(found[MISPRIMED]):
        relation, subject, answer = (_text(location, row, name) for name in ("relation", "sub_label", "obj_label"))
        words = {kind: _text(location, row, f"prime_{kind}") for kind in PRIMES if row.get(f"prime_{kind}") is not None}
        variants.primes[relation, subject, answer] = words
    return variants


def _rows(path: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    return read_json_lines(path) if path else iter(())


def _text(location: str, row: dict[str, Any], name: str) -> str:
    if not isinstance(text := row.get(name), str) or not text.strip():
        raise CorpusError(f"{location}: {name} must be a text, received {str(text)[:60]!r}.")
    return text.strip()


def _template(location: str, row: dict[str, Any], name: str) -> str:
    template = _text(location, row, name)
    if not template.count("[X]") == template.count("[Y]") == 1:
        raise CorpusError(f"{location}: a template needs one [X] and one [Y], received {template[:60]!r}.")
    return template[:-1].rstrip() + " ." if template.endswith(".") else template
