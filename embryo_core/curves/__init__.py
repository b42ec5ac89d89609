"""Statistics of stored scores: intervals, onsets, peaks and histories; its modules compute more specific ones."""

from embryo_core.curves.scores import (
    HISTORIES,
    Floats,
    Onset,
    Peak,
    Z,
    classify_curve,
    classify_histories,
    difference_interval,
    expected_layer,
    expected_layer_interval,
    held_from,
    interval,
    normalise_rows,
    onset,
    peak,
    rescale,
    smooth,
)
