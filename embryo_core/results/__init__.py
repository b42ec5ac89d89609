"""Results on disk: what metrics found, written to parquet and read back as tables; no other room touches parquet."""

from embryo_core.results.examples import read_examples, write_examples
from embryo_core.results.foreign import read_foreign, write_foreign
from embryo_core.results.histories import read_histories, read_right_answers
from embryo_core.results.maps import (
    AttentionHistory,
    read_attention,
    read_attention_layers,
    read_attention_step,
    read_attention_steps,
)
from embryo_core.results.position_weights import read_position_weights
from embryo_core.results.reached import read_reached, read_reached_in_spans
from embryo_core.results.read import (
    done,
    read_answers,
    read_cloze,
    read_many_scores,
    read_metrics,
    read_probes,
    read_relation,
    read_scores,
    read_spans,
    read_task_scores,
    read_tuning,
    read_words,
    steps_done,
)
from embryo_core.results.sources import Identity, check_identity, of_other_data, read_sources
from embryo_core.results.word_counts import read_word_counts
from embryo_core.results.write import begin, compact, forget_other, write

__all__ = [
    "AttentionHistory",
    "Identity",
    "begin",
    "check_identity",
    "compact",
    "done",
    "forget_other",
    "of_other_data",
    "read_answers",
    "read_attention",
    "read_attention_layers",
    "read_attention_step",
    "read_attention_steps",
    "read_cloze",
    "read_examples",
    "read_foreign",
    "read_histories",
    "read_many_scores",
    "read_metrics",
    "read_position_weights",
    "read_probes",
    "read_reached",
    "read_reached_in_spans",
    "read_relation",
    "read_right_answers",
    "read_scores",
    "read_sources",
    "read_spans",
    "read_task_scores",
    "read_tuning",
    "read_word_counts",
    "read_words",
    "steps_done",
    "write",
    "write_examples",
    "write_foreign",
]
