"""The design of a run as rows that can be compared: model, losses, data, size and training cost."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from statistics import median
from typing import Any

import pandas as pd
from msgspec import convert

from embryo_core import runs
from embryo_core.comparison.cost import parameters, training_flops
from embryo_core.comparison.differences import continues, identify_sources
from embryo_core.errors import EmbryoError
from embryo_core.runs.schema import CorpusCard, Settings
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Checkpoint, Run

MASKED_PIECES = "masked pieces"
DESIGN_CHOICES = (  # rows of choices by the experimenter, not of measurements
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
# These count as choices only between runs of one family; otherwise they follow from the family.
FAMILY_CHOICES = ("embedding size", MASKED_PIECES)
LENGTH_CHOICES = ("updates",)  # not a choice if a run continues the other, and so necessarily has more updates
DIGEST_LENGTH = 8  # shown digits of a SHA-256
MAX_TIME = 253_402_300_800  # Unix time of the end of the year 9999, the last that datetime supports
SENTENCE_LOSSES = ("sentence order", "next sentence")
PARTIAL_SHARING = {"attention": "attention alone", "ffn": "feed-forward network alone"}
Value = str | int | float | None


@runs.read_once
def design(run: Run) -> dict[str, Value]:
    """Describe a run as row -> value; unknown values are None. Raises BrokenRun if its log cannot be read."""
    settings, checkpoints = convert(run.config, Settings), runs.checkpoints(run)
    last = checkpoints[-1] if checkpoints else None
    log_rows = runs.read_log(run)
    rates = [row["learning_rate"] for row in log_rows if row.get("learning_rate")]
    speeds = [row["tokens_per_second"] for row in log_rows if row.get("tokens_per_second")]
    counts, flops = parameters(run) or {}, training_flops(run, last.step) if last else None
    return {
        "family": run.family,
        "layers": settings.num_hidden_layers or None,
        "attention heads": settings.num_attention_heads or None,
        "hidden size": settings.hidden_size or None,
        "feed-forward size": settings.intermediate_size or None,
        "embedding size": settings.embedding_size or settings.hidden_size or None,
        "sharing": _describe_sharing(run, settings, last),
        "sentence loss": next((loss for loss in SENTENCE_LOSSES if loss in run.objective), "none"),
        "dropout": _describe_dropout(settings),
        "masked share": _describe_masked_share(run.config),
        "longest masked n-gram": settings.max_ngram or None,
        MASKED_PIECES: _describe_masked_pieces(run.config),
        "tokenizer": _describe_tokenizer(run),
        "vocabulary": settings.vocab_size or None,
        "domain": _describe_domain(run),
        "tokens of the text": convert(run.corpus, CorpusCard).trained_on or None,
        "updates": settings.steps or None,
        "learning rate": settings.learning_rate
        or max(rates, default=None),  # runs of a Trainer do not record this setting
        "seed": settings.seed,
        "parameters": sum(counts.values()) or None,
        **{f"parameters: {part}": count for part, count in counts.items()},
        "tokens seen": last.tokens if last else None,
        "tokens per second": round(median(speeds)) if speeds else None,
        "training FLOPs": None if flops is None else round(flops),
        **_training_dates(log_rows, checkpoints),
    }


def designs(compared_runs: Sequence[Run]) -> pd.DataFrame:
    """Return the designs of runs as a table with the columns row, one per run, and differs (whether the values do)."""
    by_run = [design(run) for run in compared_runs]
    rows = list(dict.fromkeys(row for design in by_run for row in _order_rows(design, by_run)))
    values = {row: [design.get(row) for design in by_run] for row in rows}
    table = [[row, *row_values, len(set(row_values)) > 1] for row, row_values in values.items()]
    return pd.DataFrame(table, columns=["row", *(run.name for run in compared_runs), "differs"], dtype=object)


def _order_rows(design: dict[str, Value], designs: Iterable[dict[str, Value]]) -> list[str]:
    """Return the row names of a design, with the parts of all designs after its own parts."""
    part_rows = [row for other in designs for row in other if row.startswith("parameters:")]
    index = list(design).index("tokens seen")
    return [*list(design)[:index], *part_rows, *list(design)[index:]]


def differing_choices(first: Run, second: Run) -> list[str]:
    """List the DESIGN_CHOICES in which two runs differ, with the exceptions FAMILY_CHOICES and LENGTH_CHOICES."""
    first_design, second_design = design(first), design(second)
    excluded = set(FAMILY_CHOICES) if first.family != second.family else set()
    if continues(first, second) or continues(second, first):
        excluded |= set(LENGTH_CHOICES)
    return [
        choice for choice in DESIGN_CHOICES if choice not in excluded and first_design[choice] != second_design[choice]
    ]


def _describe_sharing(run: Run, settings: Settings, last: Checkpoint | None) -> str | None:
    """Return which parameters layers share, by the run's settings and the configuration of its last checkpoint."""
    try:
        architecture = runs.read_config(last, runs.Architecture) if last else None
    except EmbryoError:
        architecture = None
    sharing = settings.share
    if architecture is None:
        return sharing
    if sharing in PARTIAL_SHARING:  # the checkpoints of such runs are written as if layers shared nothing
        group_count = settings.num_hidden_groups
        return PARTIAL_SHARING[sharing] + ("" if group_count == 1 else f" within {group_count} groups of layers")
    if architecture.group_count >= architecture.num_hidden_layers:
        return "none"
    return "all layers" if architecture.group_count == 1 else f"within {architecture.group_count} groups of layers"


def _describe_masked_share(config: dict[str, Any]) -> Value:
    """Return the share of masked tokens, "FIRST to LAST" if it changes in training, or None if no token is masked."""
    first = config.get("masked_share")
    last = first if config.get("masked_share_end") is None else config["masked_share_end"]
    return (first or None) if first == last else f"{first} to {last}"


def _describe_masked_pieces(config: dict[str, Any]) -> str | None:
    """Describe what replaces the pieces to be predicted, in percent; None if the settings are unknown."""
    settings = [config.get(f"{method}_token_share") for method in ("mask", "random")]
    shares = [share for share in settings if isinstance(share, int | float) and 0 <= share <= 1]
    if len(shares) < len(settings) or sum(shares) > 1:
        return None
    replacements = zip(("[MASK]", "random", "as they are"), (*shares, 1 - sum(shares)), strict=True)
    return ", ".join(f"{100 * share:.3g} % {replacement}" for replacement, share in replacements if share > 1e-9)


def _describe_dropout(settings: Settings) -> str | None:
    """Return the dropout of hidden states and of attention weights as text; None if both are unknown."""
    rates = [settings.hidden_dropout_prob, settings.attention_probs_dropout_prob]
    return None if rates == [None, None] else " and ".join("unknown" if rate is None else f"{rate:g}" for rate in rates)


def _describe_tokenizer(run: Run) -> str:
    """Describe the tokenizer: kind and number of pieces, if it can be read, and the first digits of its SHA-256."""
    try:
        tokenizer = load_tokenizer(run)
        description = f"{tokenizer.kind}, {tokenizer.vocabulary_size:,} pieces"
    except EmbryoError:
        description = "unknown"
    return f"{description} ({run.tokenizer_sha256[:DIGEST_LENGTH]})"


def _describe_domain(run: Run) -> str | None:
    """Name the sources of the training text, with a digest of their SHA-256 to distinguish texts of the same name.

    A source without a SHA-256 in run.json is identified by its name.
    """
    sources = convert(run.corpus, CorpusCard).sources
    names = sorted(source if isinstance(source, str) else source.name for source in sources)
    if not names:
        return None
    identities = identify_sources(sources)
    labels = names if len(names) < 3 else [names[0], f"{len(names) - 1} more"]
    digest = sha256("\n".join(identities).encode()).hexdigest()[:DIGEST_LENGTH]
    return ", ".join(labels) + ("" if identities == labels else f" ({digest})")


def _training_dates(log_rows: Sequence[dict[str, Any]], checkpoints: Sequence[Checkpoint]) -> dict[str, str | None]:
    """Return the first and last time in the log (UTC); if the log has none, those of the manifests, marked "(file)"."""
    times, suffix = [row["time"] for row in log_rows if 0 < (row.get("time") or 0) < MAX_TIME], ""
    if not times:
        times, suffix = [checkpoint.manifest_mtime / 1e9 for checkpoint in checkpoints], " (file)"
    ends = [times[0], times[-1]] if times else []
    dates = [datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%d %H:%M") + suffix for end in ends]
    return {"trained from": dates[0] if dates else None, "trained until": dates[-1] if dates else None}
