"""Cached reads of runs and results; the keys hold the files' times, so that a new evaluation is seen at once."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from embryo_core import results as store
from embryo_core import runs
from embryo_core.types import Run

Stamp = tuple[Any, ...]


def stamp(run: Run) -> Stamp:
    """Identifies the state of a run's results: its path, and the time and size of every file or folder of parts."""
    paths = sorted([*run.results.glob("*"), *run.results.glob("parts/*/*")])
    facts = [(path.name, path.stat()) for path in paths if path.exists()]
    return str(run.path), *((name, fact.st_mtime_ns, fact.st_size) for name, fact in facts)


def checkpoints_stamp(run: Run) -> Stamp:
    """Identifies the checkpoints of a run: the folder of each, and when it was written."""
    return tuple((str(checkpoint.path), checkpoint.written) for checkpoint in runs.checkpoints(run))


def scores(run: Run, metric: str | None = None) -> pd.DataFrame:
    """Scores of a run, or of one of its metrics: run, metric, step, layer, group, value, n. Raises ResultsError."""
    return _scores(stamp(run), run, metric)


def words(run: Run, metric: str, group: str | None = None, step: int | None = None) -> pd.DataFrame:
    """The words behind the scores of a metric, of one group or all (see `store.read_words`). Raises ResultsError."""
    return _words(stamp(run), run, metric, group, step)


def cloze(run: Run, relation: str | None = None, fact: str | None = None) -> pd.DataFrame:
    """What the run answered to LAMA facts at each step (see `store.read_cloze`). Raises ResultsError."""
    return _cloze(stamp(run), run, relation, fact)


def probes(run: Run, task: str, layer: int, step: int) -> pd.DataFrame:
    """How the probe of a task and layer was trained at a step (see `store.read_probes`). Raises ResultsError."""
    return _probes(stamp(run), run, task, layer, step)


def attention(run: Run, layer: int, head: int) -> Any:
    """The history of one head (see `store.read_attention`). Raises ResultsError."""
    return _attention(stamp(run), run, layer, head)


def attention_step(run: Run, step: int) -> tuple[np.ndarray, int]:
    """All heads at one step: weights [layers, heads, L, L] and the number of sentences. Raises ResultsError."""
    return _attention_step(stamp(run), run, step)


def sources(run: Run) -> dict[str, dict[str, Any]]:
    """What data each metric was computed on. Raises ResultsError."""
    return store.read_sources(run)


def templates(run: Run) -> dict[str, str]:
    """Template of each LAMA relation that the run was asked: {"P19": "[X] was born in [Y] ."}; may be none."""
    return sources(run).get("world_knowledge", {}).get("templates", {})


def done(run: Run, metric: str) -> set[int]:
    """Steps at which a metric has been computed."""
    return store.done(run, metric)


def log(run: Run) -> pd.DataFrame:
    """The training log: one row per split ("train", "heldout") and step; empty where there is none."""
    path = run.path / "log.jsonl"
    fact = path.stat() if path.is_file() else None
    return _log((str(path), fact and fact.st_mtime_ns, fact and fact.st_size), run)


# The first argument is the key; Streamlit does not hash arguments whose name begins with an underscore.


@st.cache_data(max_entries=64, show_spinner=False)
def _scores(stamp: Stamp, _run: Run, metric: str | None) -> pd.DataFrame:
    return store.read_scores(_run, metric)


@st.cache_data(max_entries=32, show_spinner=False)
def _words(stamp: Stamp, _run: Run, metric: str, group: str | None, step: int | None) -> pd.DataFrame:
    return store.read_words(_run, metric, group, step)


@st.cache_data(max_entries=32, show_spinner=False)
def _cloze(stamp: Stamp, _run: Run, relation: str | None, fact: str | None) -> pd.DataFrame:
    return store.read_cloze(_run, relation=relation, fact=fact)


@st.cache_data(max_entries=64, show_spinner=False)
def _probes(stamp: Stamp, _run: Run, task: str, layer: int, step: int) -> pd.DataFrame:
    return store.read_probes(_run, task, layer, step)


@st.cache_data(max_entries=64, show_spinner=False)
def _attention(stamp: Stamp, _run: Run, layer: int, head: int) -> Any:
    return store.read_attention(_run, layer, head)


@st.cache_data(max_entries=16, show_spinner=False)
def _attention_step(stamp: Stamp, _run: Run, step: int) -> tuple[np.ndarray, int]:
    return store.read_attention_step(_run, step)


@st.cache_data(max_entries=8, show_spinner=False)
def _log(stamp: Stamp, _run: Run) -> pd.DataFrame:
    return pd.DataFrame(runs.read_log(_run))
