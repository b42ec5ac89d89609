"""Results on disk: findings of metrics, written to parquet and read as frames; only this package uses parquet."""

from embryo_core.results.fact_histories import read_histories, read_right_answers
from embryo_core.results.foreign_files import read_foreign, write_foreign
from embryo_core.results.memo import memoized, results_state
from embryo_core.results.provenance import (
    DatasetId,
    check_dataset,
    data_options,
    incomparable_evaluations,
    read_sources,
)
from embryo_core.results.read import (
    AttentionHistory,
    read_answers,
    read_attention,
    read_attention_step,
    read_attention_steps,
    read_cloze,
    read_example_questions,
    read_gram_matrices,
    read_metrics,
    read_pair_scores,
    read_probes,
    read_relation,
    read_scores,
    read_spans,
    read_surprisals,
    read_task_scores,
    read_tuning,
    read_variant_answers,
    read_words,
    steps_by_metric,
    steps_done,
)
from embryo_core.results.summaries import read_position_weights, read_reached, read_word_counts
from embryo_core.results.write import compact, note_dataset, write, write_examples
