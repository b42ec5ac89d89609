"""The design of a run as rows that can be compared: model, losses, data, size, and what the training cost."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from statistics import median
from typing import Any

import pandas as pd
from msgspec import convert

from embryo_core import runs
from embryo_core.compare.choices import goes_on_from
from embryo_core.compare.flops import training_flops
from embryo_core.compare.parameters import parameters
from embryo_core.errors import EmbryoError
from embryo_core.runs.schema import Corpus, Settings
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Checkpoint, Run

MASKED_PIECES = "masked pieces"
CHOICES = (  # rows that a designer decides
    "family",
    "layers",
    "attention heads",
    "hidden size",
    "feed-forward size",
    "embedding size",
    "tokenizer",
    "sharing",
    "sentence loss",
    "dropout",
    "masked share",
    "longest masked n-gram",
    MASKED_PIECES,
    "domain",
    "updates",
    "learning rate",
)
OF_FAMILY = ("embedding size", MASKED_PIECES)  # choices within one family; another's may follow from the family
OF_LENGTH = ("updates",)  # that set when the learning rate falls; a run that goes on from another has more of them
DIGEST = 8  # digits of a SHA-256 that tell texts or tokenizers apart
END = 253_402_300_800  # seconds since 1970 at the end of the year 9999, the last that a date may have
PARTLY = {"attention": "attention alone", "ffn": "feed-forward network alone"}
Value = str | int | float | None


def design(run: Run) -> dict[str, Value]:
    """What a run is, row by row; None where it does not tell. Raises BrokenRun where its log cannot be read."""
    settings, checkpoints = convert(run.config, Settings), runs.checkpoints(run)
    last = checkpoints[-1] if checkpoints else None
    counts = parameters(run) or {}
    return {
        "family": run.family,
        "layers": settings.num_hidden_layers or None,
        "attention heads": settings.num_attention_heads or None,
        "hidden size": settings.hidden_size or None,
        "feed-forward size": settings.intermediate_size or None,
        "embedding size": settings.embedding_size or settings.hidden_size or None,
        "sharing": _sharing(run, settings, last),
        "sentence loss": run.objective.partition(" + ")[2] or "none",
        "dropout": _dropout(settings),
        "masked share": _masked_share(run.config),
        "longest masked n-gram": settings.max_ngram or None,
        MASKED_PIECES: _masked_pieces(run.config),
        "tokenizer": _tokenizer(run),
        "vocabulary": settings.vocab_size or None,
        "domain": _domain(run),
        "tokens of the text": _tokens(run),
        "updates": settings.steps or None,
        "learning rate": settings.learning_rate or _highest_rate(run),
        "seed": settings.seed,
        "parameters": sum(counts.values()) or None,
        **{f"parameters: {part}": count for part, count in counts.items()},
        "tokens seen": last.tokens if last else None,
        "tokens per second": _speed(run),
        "training FLOPs": _flops(run, last),
        **_trained(run, checkpoints),
    }


def designs(compared: Sequence[Run]) -> pd.DataFrame:
    """The designs of runs side by side: row, a column per run in their order, and whether it `differs`."""
    by_run = [design(run) for run in compared]
    rows = list(dict.fromkeys(row for found in by_run for row in _in_order(found, by_run)))
    values = {row: [found.get(row) for found in by_run] for row in rows}
    table = [[row, *found, len(set(found)) > 1] for row, found in values.items()]
    return pd.DataFrame(table, columns=["row", *(run.name for run in compared), "differs"], dtype=object)


def _in_order(found: dict[str, Value], all_of_them: Iterable[dict[str, Value]]) -> list[str]:
    """The rows of a design; a part that only another has comes before the rows that follow parts."""
    parts = [row for one in all_of_them for row in one if row.startswith("parameters:")]
    after = list(found).index("tokens seen")
    return [*list(found)[:after], *parts, *list(found)[after:]]


def differing_choices(first: Run, second: Run) -> list[str]:
    """The choices in which two runs differ.

    Those `OF_FAMILY` only where both are of one family, those `OF_LENGTH` only where neither goes on from the other.
    """
    one, two = design(first), design(second)
    follow = OF_FAMILY if first.family != second.family else ()
    if goes_on_from(first, second) or goes_on_from(second, first):
        follow += OF_LENGTH
    return [choice for choice in CHOICES if choice not in follow and one[choice] != two[choice]]


def _sharing(run: Run, settings: Settings, last: Checkpoint | None) -> str | None:
    """What layers share; said by the run, else counted in the configuration of its last checkpoint."""
    try:
        sizes = runs.read_config(last, runs.Architecture) if last else None
    except EmbryoError:
        sizes = None
    named = settings.share
    if sizes is None:
        return named
    groups = settings.num_hidden_groups
    if named in PARTLY:  # its checkpoints are those of a model that shares nothing
        return PARTLY[named] if groups == 1 else f"{PARTLY[named]} within {groups} groups of layers"
    if sizes.groups >= sizes.num_hidden_layers:
        return "none"
    return "all layers" if sizes.groups == 1 else f"within {sizes.groups} groups of layers"


def _masked_share(config: dict[str, Any]) -> Value:
    """Of the tokens, throughout or from the first update to the last."""
    first = config.get("masked_share")
    last = first if config.get("masked_share_end") is None else config["masked_share_end"]
    return (first or None) if first == last else f"{first} to {last}"


def _masked_pieces(config: dict[str, Any]) -> str | None:
    """What stands in the place of those that are to be predicted, in percent of them."""
    shares = [config.get(f"{by}_token_share") for by in ("mask", "random")]
    if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares) or sum(shares) > 1:
        return None
    kinds = zip(("[MASK]", "random", "as they are"), (*shares, 1 - sum(shares)), strict=True)
    return ", ".join(f"{100 * share:.3g} % {kind}" for kind, share in kinds if share > 1e-9)


def _dropout(settings: Settings) -> str | None:
    """Of hidden states and of attention weights."""
    found = [settings.hidden_dropout_prob, settings.attention_probs_dropout_prob]
    return None if found == [None, None] else " and ".join("unknown" if one is None else f"{one:g}" for one in found)


def _tokenizer(run: Run) -> str:
    """Its kind, its pieces where they can be read, and the SHA-256 of its file."""
    try:
        found = load_tokenizer(run)
        said = f"{found.kind}, {found.vocabulary_size:,} pieces"
    except EmbryoError:
        said = "unknown"
    return f"{said} ({run.tokenizer_sha256[:DIGEST]})"


def _domain(run: Run) -> str | None:
    """The sources of the training text by name, and what tells them from others: tokenizers cut one text differently.

    A source is what its SHA-256 says, or its name where run.json has none.
    """
    sources = convert(run.corpus, Corpus).sources
    names = sorted(source if isinstance(source, str) else source.name for source in sources)
    if not names:
        return None
    known = sorted(source if isinstance(source, str) else source.sha256 or source.name for source in sources)
    shown = names if len(names) < 3 else [names[0], f"{len(names) - 1} more"]
    digest = sha256("\n".join(known).encode()).hexdigest()[:DIGEST]
    return ", ".join(shown) + ("" if known == shown else f" ({digest})")


def _tokens(run: Run) -> int | None:
    return convert(run.corpus, Corpus).trained_on or None


def _highest_rate(run: Run) -> float | None:
    """The highest that was logged, for runs without the setting, such as those of transformers' Trainer."""
    return max((row["learning_rate"] for row in runs.read_log(run) if row.get("learning_rate")), default=None)


def _speed(run: Run) -> float | None:
    """The median of what training logged."""
    logged = [row["tokens_per_second"] for row in runs.read_log(run) if row.get("tokens_per_second")]
    return round(median(logged)) if logged else None


def _flops(run: Run, last: Checkpoint | None) -> int | None:
    found = training_flops(run, last.step) if last else None
    return None if found is None else round(found)


def _trained(run: Run, checkpoints: Sequence[Checkpoint]) -> dict[str, str | None]:
    """When training was first and last logged; of a log without times, when the manifests were written on this disk."""
    logged = [row["time"] for row in runs.read_log(run) if 0 < (row.get("time") or 0) < END]
    times, of = (logged, "") if logged else ([found.written / 1e9 for found in checkpoints], " (file)")
    ends = (times[0], times[-1]) if times else (None, None)
    dates = [end and datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%d %H:%M") + of for end in ends]
    return dict(zip(("trained from", "trained until"), dates, strict=True))
