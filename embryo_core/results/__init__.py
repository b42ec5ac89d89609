"""Results on disk: what metrics found, written to parquet and read back as tables."""

from embryo_core.results.store import (
    AttentionHistory,
    compact,
    done,
    forget,
    read_attention,
    read_attention_step,
    read_attention_steps,
    read_cloze,
    read_probes,
    read_scores,
    read_sources,
    read_words,
    write,
    write_sources,
)

__all__ = [
    "AttentionHistory",
    "compact",
    "done",
    "forget",
    "read_attention",
    "read_attention_step",
    "read_attention_steps",
    "read_cloze",
    "read_probes",
    "read_scores",
    "read_sources",
    "read_words",
    "write",
    "write_sources",
]
