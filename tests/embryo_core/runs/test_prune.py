"""Grids of steps, and checkpoints that lose their weights."""

import json

import pytest

from embryo_core import query, results, runs
from embryo_core.engine.cache import MODELS
from embryo_core.errors import BrokenCheckpoint, MissingWeights, ResultsError, UnknownStep
from embryo_core.evaluate import Report, evaluate
from embryo_core.runs.prune import kept_steps
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests.conftest import SAMPLE_DATA

# === Grids ===


def test_the_step_grid_is_dense_where_function_words_are_learned():
    """Zero, powers of two below the spacing, then the regular grid and the last step."""
    assert runs.step_grid(100, 25) == (0, 1, 2, 4, 8, 16, 25, 50, 75, 100)
    assert runs.step_grid(10, 1000) == (0, 1, 2, 4, 8, 10)


def test_a_grid_of_more_steps_than_there_are_has_each_once():
    """However many are asked for: they are not counted through."""
    assert runs.log_grid(5, 10**18) == (1, 2, 3, 4, 5)
    assert runs.log_grid(0, 4) == ()
    assert runs.log_grid(8, 1) == (1, 2, 4, 8)


# === Pruning ===


METRIC = ["token_reconstruction"]
TEXT = "The [MASK] runs ."


def thin(run: Run, *keep: str) -> None:
    """Remove the weights of all checkpoints but these."""
    for checkpoint, _ in runs.to_remove(run, keep):
        runs.remove_weights(checkpoint)


@pytest.fixture
def thinned(own_run: Run) -> Run:
    """Return a run of the steps 0, 8 and 16 whose step 8 has no weights."""
    thin(own_run, "0", "16")
    return own_run


def test_what_goes_is_listed_before_it_goes(own_run: Run):
    """Each checkpoint with its bytes; the last always stays; nothing has changed."""
    size = (own_run.path / "checkpoints" / "step8" / "model.safetensors").stat().st_size
    assert [(c.step, freed) for c, freed in runs.to_remove(own_run, ["0"])] == [(8, size)]
    assert all(checkpoint.has_weights for checkpoint in runs.checkpoints(own_run))


@pytest.mark.parametrize(
    ("keep", "going"),
    [(["8"], [0]), (["every:16"], [8]), (["every:8"], []), (["log:1"], []), (["every:100"], [8]), (["0", "8"], [])],
    ids=str,
)
def test_steps_stay_by_name_by_distance_and_by_doubling(own_run: Run, keep: list[str], going: list[int]):
    """A grid keeps the checkpoints nearest to it, so that it need not be the one that was saved on."""
    assert [checkpoint.step for checkpoint, _ in runs.to_remove(own_run, keep)] == going


def test_a_grid_keeps_what_is_nearest_to_it(own_run: Run):
    """By the difference for every:N, by the ratio for log:K; step 0 counts as half of step 1."""
    assert kept_steps(own_run, ["every:5"], range(17)) == {0, 5, 10, 15}
    assert kept_steps(own_run, ["log:1"], range(17)) == {1, 2, 4, 8, 16}
    assert kept_steps(own_run, ["log:1"], [0, 3, 5, 12, 16]) == {0, 3, 5, 12, 16}
    assert kept_steps(own_run, ["log:1", "every:9"], [0, 5, 7, 16]) == {0, 5, 7, 16}


def test_only_weights_go_and_the_manifest_says_so(thinned: Run):
    """config.json stays and is still checked; the hash of the weights is kept, to know a copy of them again."""
    folder = thinned.path / "checkpoints" / "step8"
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "manifest.json"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert list(manifest["sha256"]) == ["config.json"] and list(manifest["removed"]) == ["model.safetensors"]
    assert [(c.step, c.has_weights) for c in runs.checkpoints(thinned)] == [(0, True), (8, False), (16, True)]
    assert runs.broken(thinned) == []


def test_thinning_again_frees_nothing_and_finishes_what_was_interrupted(thinned: Run):
    """A process killed after the manifest and before the weights leaves a file that the next one removes."""
    assert runs.to_remove(thinned, ["0"]) == []
    left = thinned.path / "checkpoints" / "step8" / "model.safetensors"
    left.write_bytes(b"left behind")
    assert [checkpoint.step for checkpoint, _ in runs.to_remove(thinned, ["0"])] == [8]
    thin(thinned, "0")
    assert not left.exists() and not runs.checkpoint(thinned, 8).has_weights


def test_what_stays_must_be_there(thinned: Run):
    """A step that the run never had, and one that has lost its weights, cannot be kept."""
    with pytest.raises(UnknownStep, match="no checkpoint at step 7"):
        runs.to_remove(thinned, ["7"])
    with pytest.raises(MissingWeights, match="Step 8 of run 'tiny' has results and no weights"):
        runs.to_remove(thinned, ["8"])


def test_a_question_to_all_steps_takes_those_with_weights_and_says_so(thinned: Run):
    """Trace, tracked word, lens and attention over the steps leave the others out in one sentence."""
    word = query.read_question(TEXT, load_tokenizer(thinned)).track("the")
    found = [query.ask(thinned, TEXT), query.ask(thinned, word), query.ask_layers(thinned, TEXT)]
    for history in (*found, query.attend_over_steps(thinned, "The cat sat .", 1, 1)):
        assert list(history.steps) == [0, 16]
        assert history.skipped == ("2 of 3 checkpoints kept their weights.",)


def test_a_question_to_a_step_without_weights_names_the_nearest(thinned: Run):
    """Not a broken file: the weights were taken away, and the message says where to ask instead."""
    for ask in (lambda: query.ask(thinned, TEXT, [8]), lambda: query.attend(thinned, TEXT, 8)):
        with pytest.raises(MissingWeights, match="no weights to compute with; the nearest step with weights is 0"):
            ask()


def test_weights_that_go_while_a_question_waits_are_no_broken_checkpoint(own_run: Run):
    """A checkpoint listed before it was thinned is refused in the same sentence."""
    before = runs.checkpoint(own_run, 8)
    runs.remove_weights(before)
    with pytest.raises(MissingWeights):
        MODELS.get(before)


def test_an_evaluation_takes_the_steps_with_weights_and_says_so(thinned: Run):
    """A step that can no longer be computed is no failure; asked for by its number, it is refused."""
    sentence = "No weights were kept at step 8."
    assert evaluate(thinned, SAMPLE_DATA, METRIC, limit=1) == Report(computed=2, thinned=[sentence])
    assert results.done(thinned)[METRIC[0]] == {0, 16}
    with pytest.raises(MissingWeights, match="Step 8"):
        evaluate(thinned, SAMPLE_DATA, METRIC, steps=[8], limit=1)


def test_results_of_a_thinned_step_are_never_lost(own_run: Run):
    """Computed again are those of the other steps; other data, which would replace all of them, are refused."""
    evaluate(own_run, SAMPLE_DATA, METRIC, limit=1)
    before = results.read_scores(own_run)
    thin(own_run, "0", "16")
    assert evaluate(own_run, SAMPLE_DATA, METRIC, limit=1) == Report(done_before=3)
    assert evaluate(own_run, SAMPLE_DATA, METRIC, limit=1, overwrite=True) == Report(computed=2, done_before=1)
    with pytest.raises(ResultsError, match="those of 1 step without weights cannot be computed again"):
        evaluate(own_run, SAMPLE_DATA, METRIC, limit=2, overwrite=True)
    assert results.read_scores(own_run).equals(before)


def test_a_run_without_any_weights_says_so(thinned: Run):
    """Its results can be looked at, and nothing can be asked."""
    for checkpoint in runs.checkpoints(thinned):
        runs.remove_weights(checkpoint)
    with pytest.raises(MissingWeights, match="Run 'tiny' has results and no weights"):
        query.ask(thinned, TEXT)


def test_config_of_a_thinned_checkpoint_is_still_read(thinned: Run):
    """What its model gave is known without its weights; a damaged file is still reported."""
    checkpoint = runs.checkpoint(thinned, 8)
    assert runs.read_config(checkpoint, runs.ModelClass).model_type == "albert"
    (checkpoint.path / "config.json").write_text("{")
    with pytest.raises(BrokenCheckpoint, match=r"config\.json is not valid"):
        runs.verify(checkpoint)


def test_a_step_that_is_trained_again_has_weights_again(thinned: Run):
    """The writer of checkpoints replaces the folder as a whole."""
    source, folder = (thinned.path / "checkpoints" / name for name in ("step0", "step8"))
    with runs.replacing(folder) as temporary:
        temporary.mkdir()
        for name in ("config.json", "model.safetensors"):
            (temporary / name).write_bytes((source / name).read_bytes())
        runs.write_manifest(temporary, 8, 0, 0)
    assert runs.checkpoint(thinned, 8).has_weights
    runs.verify(runs.checkpoint(thinned, 8))
