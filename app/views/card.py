"""A run's card: the run's size, accuracy and settings, from run.json, the manifests and the training log."""

import sys
from html import escape
from typing import Any

import pandas as pd
import streamlit as st

from app.view import View
from embryo_core import runs
from embryo_core.figures.overview import weighted_losses
from embryo_core.figures.style import abbreviate
from embryo_core.types import Run
from embryo_core.words import family_name, name_step, percent, step_heading

OPTIMIZER_NAMES = {  # name in run.json -> name on the card
    "lamb": "LAMB",
    "adamw": "AdamW",
    "adamw_bert": "AdamW without bias correction",
    "muon": "Muon and AdamW",
}
SIZE_NAMES = {  # setting in run.json -> name on the card, in its order
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "hidden_size": "hidden",
    "intermediate_size": "feed-forward",
    "embedding_size": "embedding",
    "max_position_embeddings": "positions",
}


def show(view: View, log: pd.DataFrame) -> None:
    """Draw the card: the run's size in numbers, its held-out accuracy at the chosen step, and its settings."""
    with st.container(border=True, key="card"):
        with st.container(horizontal=True, gap="large"):
            for label, value in _numbers(view, log).items():
                st.metric(label, value, width="content")
        rows = "".join(f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>" for label, value in describe(view.run))
        st.html(f"<dl>{rows}</dl>")


def _numbers(view: View, log: pd.DataFrame) -> dict[str, str]:
    """Return {label: value} of the card's numbers; held-out accuracy is from the last row up to the chosen step."""
    last_checkpoint = runs.checkpoints(view.run)[-1]
    accuracy, value = f"Held-out accuracy, {view.name_step(view.step)}", "–"
    accuracy_column, count_column = (
        ("next_token_accuracy", "n_predicted") if "next_token_accuracy" in log else ("masked_lm_accuracy", "n_masked")
    )
    if accuracy_column in log:
        for _, row in log[(log["split"] == "heldout") & (log["step"] <= view.step)].tail(1).iterrows():
            accuracy += f", n = {int(row[count_column]):,}" if pd.notna(row.get(count_column)) else ""
            value = percent(row[accuracy_column])
    return {
        "Checkpoints": f"{len(view.steps):,} of {len(view.run.planned_steps):,} planned",
        step_heading("Last", view.run.step_unit): f"{last_checkpoint.step:,}",
        "Tokens seen": "–" if last_checkpoint.tokens is None else abbreviate(last_checkpoint.tokens),
        "Sequences seen": "–" if last_checkpoint.sequences is None else abbreviate(last_checkpoint.sequences),
        accuracy: value,
    }


def describe(run: Run) -> list[tuple[str, str]]:
    """Return the rows (name, value) of the card in reading order, without values that run.json lacks."""
    origin = run.origin
    tokens_before = f", after {abbreviate(origin.tokens)} tokens" if origin and origin.tokens else ""
    pieces = f"{run.config['vocab_size']:,} pieces, " if "vocab_size" in run.config else ""
    rows = {
        "Model": f"{family_name(run.family)}, {run.objective}",
        "Size": " · ".join(f"{run.config[key]:,} {name}" for key, name in SIZE_NAMES.items() if key in run.config),
        "Tokenizer": f"{pieces}sha256 {run.tokenizer_sha256[:12]}",
        "Continues": f"run {origin.run}, {name_step(origin.step, run.step_unit)}{tokens_before}" if origin else "",
        "Corpus": _text(run.corpus.get("train", run.corpus), run.corpus.get("sources", [])),
        "Held out": _text(run.corpus.get("heldout", {}), run.corpus.get("heldout_sources", [])),
        "Recipe": _recipe(run.config),
        "Loss": f"sum of all objectives, {weights}" if (weights := weighted_losses(run.config)) else "",
        "Batches": _batches(run.config),
        "Masking": _masking(run.config),
        "Note": run.note,
        "Code": f"version {run.code_version}" + (f", seed {run.config['seed']}" if "seed" in run.config else ""),
    }
    return [(label, value) for label, value in rows.items() if value]


def _text(corpus_part: dict[str, Any], sources: list[Any]) -> str:
    """Return the size of a part of the corpus, and its sources."""
    words = [f"{abbreviate(corpus_part[name])} {name}" for name in ("documents", "tokens") if name in corpus_part]
    names = [source["name"] if isinstance(source, dict) else str(source) for source in sources]
    if names:
        words.append(names[0] if len(names) == 1 else f"{len(names)} files ({names[0]}, …)")
    if "sha256" in corpus_part:
        words.append(f"sha256 {str(corpus_part['sha256'])[:12]}")
    return ", ".join(words)


def _recipe(config: dict[str, Any]) -> str:
    """Return the optimizer and its settings, as far as run.json has them."""
    phrases = [
        OPTIMIZER_NAMES.get(str(config.get("optimizer")), ""),
        f"{config['steps']:,} updates" if "steps" in config else "",
        f"warm-up {config['warmup_steps']:,}" if "warmup_steps" in config else "",
        f"constant rate until {config['constant_steps']:,}" if config.get("constant_steps") else "",
        f"peak learning rate {config['learning_rate']:.3g}" if "learning_rate" in config else "",
        f"weight decay {config['weight_decay']:g}" if "weight_decay" in config else "",
    ]
    return ", ".join(phrase for phrase in phrases if phrase)


def _batches(config: dict[str, Any]) -> str:
    """Return the sizes of batches, and the updates for which each is used; "" if run.json lacks them."""
    if not {"batch_size", "sequence_length"} <= config.keys():
        return ""
    long_batches = f"{config['batch_size']:,} × {config['sequence_length']:,} tokens"
    if not config.get("short_steps"):
        return long_batches
    short_batches = f"{config['short_batch_size']:,} × {config['short_sequence_length']:,} tokens"
    if long_interval := config.get("long_every"):
        short_batches += f", one update in {long_interval:,} of {long_batches}"
    if config["short_steps"] >= config.get("steps", sys.maxsize):
        return short_batches
    return f"{short_batches}{',' if long_interval else ''} for {config['short_steps']:,} updates, then {long_batches}"


def _masking(config: dict[str, Any]) -> str:
    """Return the share of masked tokens and the units of masking; "" if run.json has none, as for a decoder."""
    if "masked_share" not in config:
        return ""
    units = "whole words" if config.get("whole_words", True) else "single pieces"
    together = f", n-grams up to {config['max_ngram']}" if config.get("max_ngram", 1) > 1 else ""
    return f"{percent(config['masked_share'], 0)} of the tokens, {units}{together}"
