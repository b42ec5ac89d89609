"""Tests of step grids and of pruning, which removes the weights of checkpoints and keeps their results."""

import json

import pytest

from embryo_core import query, results, runs
from embryo_core.engine.cache import MODELS
from embryo_core.errors import BrokenCheckpoint, MissingWeights, ResultsError, UnknownStep
from embryo_core.evaluation import Report, evaluate
from embryo_core.runs.prune import kept_steps
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests.conftest import SAMPLE_DATA

# === Grids ===


def test_step_grid_is_dense_at_early_steps():
    """Function words are learned early: the grid is 0, powers of two below the spacing, even steps, the last step."""
    assert runs.step_grid(100, 25) == (0, 1, 2, 4, 8, 16, 25, 50, 75, 100)
    assert runs.step_grid(10, 1000) == (0, 1, 2, 4, 8, 10)


def test_log_grid_has_each_step_once():
    """The grid is not built by counting through the 10**18 steps requested for each doubling."""
    assert runs.log_grid(5, 10**18) == (1, 2, 3, 4, 5)
    assert runs.log_grid(0, 4) == ()
    assert runs.log_grid(8, 1) == (1, 2, 4, 8)


# === Pruning ===


METRIC = ["token_reconstruction"]
TEXT = "The [MASK] runs ."


def keep_weights_of(run: Run, *keep: str) -> None:
    """Remove the weights of all checkpoints except these."""
    for checkpoint, _ in runs.checkpoints_to_remove(run, keep):
        runs.remove_weights(checkpoint)


@pytest.fixture
def thinned_run(own_run: Run) -> Run:
    """Return a run with steps 0, 8 and 16 whose step 8 has no weights."""
    keep_weights_of(own_run, "0", "16")
    return own_run


def test_steps_to_remove_are_listed_first(own_run: Run):
    """Each is listed with its bytes, except the last step, which always stays; nothing is removed yet."""
    size = (own_run.path / "checkpoints" / "step8" / "model.safetensors").stat().st_size
    assert [(c.step, freed) for c, freed in runs.checkpoints_to_remove(own_run, ["0"])] == [(8, size)]
    assert all(checkpoint.has_weights for checkpoint in runs.checkpoints(own_run))


@pytest.mark.parametrize(
    ("keep", "going"),
    [(["8"], [0]), (["every:16"], [8]), (["every:8"], []), (["log:1"], []), (["every:100"], [8]), (["0", "8"], [])],
    ids=str,
)
def test_kept_steps_are_given_by_number_or_grid(own_run: Run, keep: list[str], going: list[int]):
    """A grid keeps the checkpoints nearest to its steps, so it need not be the grid used for saving."""
    assert [checkpoint.step for checkpoint, _ in runs.checkpoints_to_remove(own_run, keep)] == going


def test_grid_keeps_nearest_checkpoints(own_run: Run):
    """Distance is the difference for every:N and the ratio for log:K, where step 0 counts as one half."""
    assert kept_steps(own_run, ["every:5"], range(17)) == {0, 5, 10, 15}
    assert kept_steps(own_run, ["log:1"], range(17)) == {1, 2, 4, 8, 16}
    assert kept_steps(own_run, ["log:1"], [0, 3, 5, 12, 16]) == {0, 3, 5, 12, 16}
    assert kept_steps(own_run, ["log:1", "every:9"], [0, 5, 7, 16]) == {0, 5, 7, 16}


def test_pruning_removes_only_weights(thinned_run: Run):
    """The manifest keeps the hash of config.json, and that of the weights to recognise a copy of them."""
    folder = thinned_run.path / "checkpoints" / "step8"
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "manifest.json"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert list(manifest["sha256"]) == ["config.json"] and list(manifest["removed"]) == ["model.safetensors"]
    assert [(c.step, c.has_weights) for c in runs.checkpoints(thinned_run)] == [(0, True), (8, False), (16, True)]
    assert runs.broken_checkpoints(thinned_run) == []


def test_repeated_pruning_finishes_interrupted_one(thinned_run: Run):
    """A process killed after it wrote the manifest leaves weights, which the next pruning removes."""
    assert runs.checkpoints_to_remove(thinned_run, ["0"]) == []
    left = thinned_run.path / "checkpoints" / "step8" / "model.safetensors"
    left.write_bytes(b"left behind")
    assert [checkpoint.step for checkpoint, _ in runs.checkpoints_to_remove(thinned_run, ["0"])] == [8]
    keep_weights_of(thinned_run, "0")
    assert not left.exists() and not runs.checkpoint(thinned_run, 8).has_weights


def test_kept_steps_must_have_weights(thinned_run: Run):
    """An unknown step, or one that has lost its weights, cannot be kept."""
    with pytest.raises(UnknownStep, match="no checkpoint at step 7"):
        runs.checkpoints_to_remove(thinned_run, ["7"])
    with pytest.raises(MissingWeights, match="Step 8 of run 'tiny' has results and no weights"):
        runs.checkpoints_to_remove(thinned_run, ["8"])


def test_queries_skip_steps_without_weights(thinned_run: Run):
    """Traces, tracked words, layers and attention report the skipped steps in one sentence."""
    word = query.read_question(TEXT, load_tokenizer(thinned_run)).track("the")
    answers = [query.ask(thinned_run, TEXT), query.ask(thinned_run, word), query.ask_layers(thinned_run, TEXT)]
    for history in (*answers, query.attend_over_steps(thinned_run, "The cat sat .", 1, 1)):
        assert list(history.steps) == [0, 16]
        assert history.skipped == ("2 of 3 checkpoints kept their weights.",)


def test_query_at_pruned_step_names_nearest_step(thinned_run: Run):
    """The checkpoint is not reported as broken, since its weights were removed on purpose."""
    for ask in (lambda: query.ask(thinned_run, TEXT, [8]), lambda: query.attend(thinned_run, TEXT, 8)):
        with pytest.raises(MissingWeights, match="no weights to compute with; the nearest step with weights is 0"):
            ask()


def test_weights_pruned_before_loading_are_missing(own_run: Run):
    """A checkpoint listed before the pruning raises MissingWeights instead of BrokenCheckpoint."""
    before = runs.checkpoint(own_run, 8)
    runs.remove_weights(before)
    with pytest.raises(MissingWeights):
        MODELS.get(before)


def test_evaluation_skips_steps_without_weights(thinned_run: Run):
    """The skipped step is reported and is no failure, unless it is requested by number."""
    sentence = "No weights were kept at step 8."
    assert evaluate(thinned_run, SAMPLE_DATA, METRIC, limit=1) == Report(computed=2, lost=[sentence])
    assert results.steps_by_metric(thinned_run)[METRIC[0]] == {0, 16}
    with pytest.raises(MissingWeights, match="Step 8"):
        evaluate(thinned_run, SAMPLE_DATA, METRIC, steps=[8], limit=1)


def test_results_of_pruned_step_are_never_lost(own_run: Run):
    """--overwrite recomputes the other steps only; other data, which would replace all results, are refused."""
    evaluate(own_run, SAMPLE_DATA, METRIC, limit=1)
    before = results.read_scores(own_run)
    keep_weights_of(own_run, "0", "16")
    assert evaluate(own_run, SAMPLE_DATA, METRIC, limit=1) == Report(done_before=3)
    assert evaluate(own_run, SAMPLE_DATA, METRIC, limit=1, overwrite=True) == Report(computed=2, done_before=1)
    with pytest.raises(ResultsError, match="those of 1 step without weights cannot be computed again"):
        evaluate(own_run, SAMPLE_DATA, METRIC, limit=2, overwrite=True)
    assert results.read_scores(own_run).equals(before)


def test_query_of_run_without_weights_is_refused(thinned_run: Run):
    """The message says that the run still has results."""
    for checkpoint in runs.checkpoints(thinned_run):
        runs.remove_weights(checkpoint)
    with pytest.raises(MissingWeights, match="Run 'tiny' has results and no weights"):
        query.ask(thinned_run, TEXT)


def test_config_of_pruned_checkpoint_is_read(thinned_run: Run):
    """A damaged config.json of such a checkpoint is still reported."""
    checkpoint = runs.checkpoint(thinned_run, 8)
    assert runs.read_config(checkpoint, runs.ModelClass).model_type == "albert"
    (checkpoint.path / "config.json").write_text("{")
    with pytest.raises(BrokenCheckpoint, match=r"config\.json is not valid"):
        runs.verify(checkpoint)


def test_retrained_step_has_weights_again(thinned_run: Run):
    """The writer of checkpoints replaces the folder as a whole."""
    source, folder = (thinned_run.path / "checkpoints" / name for name in ("step0", "step8"))
    with runs.replacing(folder) as temporary:
        temporary.mkdir()
        for name in ("config.json", "model.safetensors"):
            (temporary / name).write_bytes((source / name).read_bytes())
        runs.write_manifest(temporary, 8, 0, 0)
    assert runs.checkpoint(thinned_run, 8).has_weights
    runs.verify(runs.checkpoint(thinned_run, 8))
