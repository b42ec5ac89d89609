"""Tests of fetching checkpoints over HTTP with huggingface_hub, from a Hub server on this machine."""

import gc
import json
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import sleep

import huggingface_hub
import pytest
from huggingface_hub import close_session

from embryo_core import query, results, runs
from embryo_core.cli import main
from embryo_core.engine import hub_cache
from embryo_core.errors import MissingWeights, RunError
from embryo_core.evaluation import evaluate
from embryo_core.evaluation.evaluator import Outcomes, Work, run_locally
from embryo_core.runs import hub_folder
from embryo_core.sources import add
from embryo_core.types import Pointer
from tests.conftest import SAMPLE
from tests.embryo_core.sources.conftest import STEPS, model_of
from tests.embryo_core.sources.hub_server import HubServer

NAME = "owner/series"
WEIGHTS = "model.safetensors"
TREEBANK = ("--treebank", str(SAMPLE / "treebank.conllu"), "--metrics", "mask_prediction")


@pytest.fixture
def series(hub: HubServer, trainer_folder: Path) -> dict[int, str]:
    """Push the Trainer's checkpoints as revisions of one repository; return step -> commit."""
    return {step: hub.push(NAME, f"step{step}", trainer_folder / f"checkpoint-{step}") for step in STEPS}


def request_count(hub: HubServer, name: str) -> int:
    """Return how often the content of a file was requested."""
    return sum(n for asked, n in hub.asked.items() if asked.startswith("GET") and asked.endswith(f"/{name}"))


def cached_files(name: str) -> list[Path]:
    """Return the files of this name in the cache."""
    return [path for path in hub_folder(NAME).glob(f"snapshots/*/{name}") if path.exists()]


def test_adding_fetches_no_weights(root, hub, series):
    """Configs are fetched at once; weights are fetched when a step is needed, and only once."""
    run = add([f"hf:{NAME}"], "public").run
    checkpoints = runs.checkpoints(run)
    assert {checkpoint.step: checkpoint.pointer.commit for checkpoint in checkpoints} == series
    assert request_count(hub, WEIGHTS) == 0 and request_count(hub, "config.json") > 0
    one = runs.checkpoint(run, 10)
    assert hub_cache.fetch_checkpoint(one) and not hub_cache.fetch_checkpoint(one)
    runs.verify(one)
    assert request_count(hub, WEIGHTS) == 1 and len(cached_files(WEIGHTS)) == 1


def test_evaluation_fetches_and_discards_each_checkpoint_once(root, hub, series, trainer_folder):
    """The scores equal those of the local folders from which the revisions were made."""
    assert main(["add", f"hf:{NAME}", "--name", "public"]) == 0
    assert main(["add", str(trainer_folder), "--name", "local"]) == 0
    for name, *more in (("public", "--discard"), ("local",)):
        assert main(["evaluate", name, *TREEBANK, *more]) == 0
    one, other = (results.read_scores(runs.open_run(name)).drop(columns="run") for name in ("public", "local"))
    assert one.equals(other) and set(one["step"]) == set(STEPS)
    assert (
        request_count(hub, WEIGHTS) == len(STEPS)
        and not cached_files(WEIGHTS)
        and len(cached_files("config.json")) == len(STEPS)
    )


def test_resumed_evaluation_keeps_at_most_two_checkpoints_on_disk(root, hub, series):
    """A stop leaves no fetched weights behind; only the checkpoint that was fetched ahead is fetched a second time."""
    run, on_disk = add([f"hf:{NAME}"], "public").run, []

    def compute(work: Sequence[Work], stop_after: int) -> Outcomes:
        for outcome in run_locally(work, discard=True):
            for _ in range(1000):  # wait until the next one is fetched
                if stop_after > 1 or len(cached_files(WEIGHTS)) > 1:
                    break
                sleep(0.01)
            on_disk.append(len(cached_files(WEIGHTS)))
            yield outcome
            stop_after -= 1
            if not stop_after:
                raise KeyboardInterrupt

    data = {"treebank": SAMPLE / "treebank.conllu"}
    with pytest.raises(KeyboardInterrupt):
        evaluate(run, data, ["mask_prediction"], limit=2, compute=partial(compute, stop_after=1))
    gc.collect()
    assert on_disk == [2] and not cached_files(WEIGHTS) and set(results.read_scores(run, "mask_prediction").step) == {0}
    report = evaluate(run, data, ["mask_prediction"], limit=2, compute=partial(compute, stop_after=9))
    assert (report.computed, report.done_before) == (2, 1) and max(on_disk) == 2 and not cached_files(WEIGHTS)
    assert request_count(hub, WEIGHTS) == len(STEPS) + 1  # the one fetched ahead of the stop was fetched again


def test_moved_branch_does_not_change_fetched_weights(root, hub, series, trainer_folder):
    """The commit at the time of adding is fetched."""
    run = add([f"hf:{NAME}"], "public").run
    hub.push(NAME, "step10", trainer_folder / "checkpoint-20")
    hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
    runs.verify(runs.checkpoint(run, 10))
    assert cached_files(WEIGHTS)[0].parent.name == series[10]
    assert cached_files(WEIGHTS)[0].read_bytes() == (trainer_folder / "checkpoint-10" / WEIGHTS).read_bytes()


def test_family_of_repositories_is_listed_by_owner(root, hub, trainer_folder):
    """Repositories of another seed or another owner are ignored."""
    for step in STEPS:
        hub.push(f"owner/seed_0-step_{step}k", "main", trainer_folder / f"checkpoint-{step}")
    hub.push("owner/seed_1-step_5k", "main", trainer_folder / "checkpoint-0")
    hub.push("other/seed_0-step_7k", "main", trainer_folder / "checkpoint-0")
    run = add(["hf:owner/seed_0-step_{step}k"], "family").run
    assert [checkpoint.step for checkpoint in runs.checkpoints(run)] == [1000 * step for step in STEPS]


def test_interrupted_download_is_reported_and_repeated(root, hub, series):
    """No partial file is kept in the cache; the next attempt fetches the file completely."""
    run = add([f"hf:{NAME}"], "public").run
    hub.cut.add(WEIGHTS)
    with pytest.raises(MissingWeights, match=rf"of hf:{NAME} at step 10 cannot be fetched \(peer closed"):
        hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
    assert not cached_files(WEIGHTS)
    hub.cut.clear()
    hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
    runs.verify(runs.checkpoint(run, 10))


def test_unreachable_hub_is_asked_only_once(root, hub, series, monkeypatch):
    """The Hub is asked again only after RETRY_AFTER; cached files stay available in the meantime."""
    run = add([f"hf:{NAME}"], "public").run
    hub.shutdown()
    hub.server_close()
    close_session()  # its open connection would still be answered
    asked, sentences = [], []
    download = huggingface_hub.hf_hub_download
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *a, **b: asked.append(a) or download(*a, **b))
    for again in (hub_cache.RETRY_AFTER, hub_cache.RETRY_AFTER, 0):
        monkeypatch.setattr(hub_cache, "RETRY_AFTER", again)
        with pytest.raises(MissingWeights, match=rf"{WEIGHTS} of hf:{NAME} at step 10 cannot be fetched \(") as error:
            hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
        sentences.append(str(error.value))
        assert hub_cache.fetch(Pointer("config.json", NAME, series[10])).exists()
    assert len(asked) == 2 and len(set(sentences)) == 1


GATED = (403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted."})
UNKNOWN = (404, {"X-Error-Code": "RepoNotFound"})
BUSY = (429, {"X-Error-Message": "We had to rate limit you."})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (GATED, "it is gated: ask for access on its page"),
        (UNKNOWN, ".*private"),
        (BUSY, "429 Too Many Requests"),
    ],
    ids=["gated", "unknown", "busy"],
)
def test_refusals_of_the_hub_are_reported_in_one_line(root, hub, series, answer, why):
    """Listing revisions and fetching weights both give the reason, without a line break."""
    run = add([f"hf:{NAME}"], "public").run
    hub.refused[NAME] = answer
    with pytest.raises(RunError, match=rf"The Hub does not list hf:{NAME} \({why}") as error:
        add([f"hf:{NAME}"], "again")
    assert "\n" not in str(error.value)
    with pytest.raises(MissingWeights, match=rf"cannot be fetched \({why}") as error:
        hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
    assert "\n" not in str(error.value)


def test_add_waits_for_retry_after(root, hub, series):
    """All steps are added, after waits of 11 s and 7 s."""
    hub.busy = ["7", "11"]
    assert add([f"hf:{NAME}"], "public").steps == STEPS
    assert [seconds for seconds in hub.waited if seconds > 1] == [11, 7]


@pytest.mark.parametrize("answers", [1, 3, 6, 8])
def test_busy_hub_leaves_no_partial_run(root, hub, series, answers):
    """The Hub asks for a wait of two hours after some answers; no run is created, and a second attempt succeeds."""
    hub.limit = answers
    with pytest.raises((RunError, MissingWeights), match=r"busy, and asks to wait 7,200 s|429"):
        add([f"hf:{NAME}"], "public")
    assert not runs.list_runs() and not [*root.glob("runs/*")]
    hub.limit = None
    assert add([f"hf:{NAME}"], "public").steps == STEPS


def test_equal_weights_are_detected_from_listed_hashes(root, hub, trainer_folder, capsys):
    """Two steps with the same weights are reported by `add` before any weights are fetched."""
    for step, of in ((0, 0), (10, 20), (20, 20)):
        hub.push(NAME, f"step{step}", trainer_folder / f"checkpoint-{of}")
    assert main(["add", f"hf:{NAME}", "--name", "public"]) == 1
    assert "equal: " in (out := capsys.readouterr().out) and "steps 10 and 20" in out
    assert request_count(hub, WEIGHTS) == 0


@pytest.mark.parametrize(
    ("form", "source", "patterns", "unit"),
    [
        ("checkpoint-{}", NAME, [], "updates"),
        ("out/long/checkpoint-{}", NAME, [], "updates"),
        ("hf_ckpt/{}.78B", NAME, [], "tokens"),
        ("hf_ckpt/{}.78B", NAME, ["hf_ckpt/{tokens}B"], "tokens"),
        ("hf_ckpt/{}.78B", f"{NAME}/hf_ckpt", [], "tokens"),
        ("chck_{}M", f"{NAME}@main", [], "words"),
    ],
)
def test_folders_of_main_branch_become_steps(root, hub, trainer_folder, tmp_path, form, source, patterns, unit):
    """Weights are fetched from the folder at the main branch's commit; answers equal those of the local folder."""
    folder = tmp_path / "repository"
    for step in STEPS:
        shutil.copytree(trainer_folder / f"checkpoint-{step}", folder / form.format(step))
    commit = hub.push(NAME, "main", folder)
    run = add([f"hf:{source}"], "public", patterns=patterns).run
    expected = {"updates": [0, 10, 20], "tokens": [780_000_000, 10_780_000_000, 20_780_000_000]}
    checkpoints = runs.checkpoints(run)
    assert run.step_unit == unit and [checkpoint.step for checkpoint in checkpoints] == expected.get(
        unit, [0, 10**7, 2 * 10**7]
    )
    for step, one in zip(STEPS, checkpoints, strict=True):
        assert (one.pointer.commit, one.pointer.file) == (commit, f"{form.format(step)}/{WEIGHTS}")
    assert query.ask(run, "The [MASK] .", [checkpoints[1].step]).best(checkpoints[1].step) == answer(trainer_folder, 10)


def answer(trainer_folder: Path, step: int) -> object:
    """Return the answer of a Trainer's local checkpoint."""
    return query.ask(add([str(trainer_folder)], "local").run, "The [MASK] .", [step]).best(step)


def test_choice_between_two_series_is_required(root, hub, trainer_folder, tmp_path):
    """With two seeds in one repository, the message names both folders."""
    for seed in (1, 2):
        for step in STEPS:
            shutil.copytree(trainer_folder / f"checkpoint-{step}", tmp_path / "both" / f"seed_{seed}/step{step}")
    hub.push(NAME, "main", tmp_path / "both")
    with pytest.raises(RunError, match="3 checkpoints in seed_1 and in seed_2"):
        add([f"hf:{NAME}"], "public")
    added = add([f"hf:{NAME}/seed_2"], "public")
    assert added.steps == STEPS and added.run.config["seed"] == 2


@pytest.mark.parametrize("numbered", ["title", "state"])
def test_commits_of_main_branch_become_steps(root, hub, trainer_folder, tmp_path, numbered):
    """A Trainer pushes each save, with the step in the title or in trainer_state.json; of two, the newer counts."""
    commits = {}
    for step in (0, 10, 10, 20):
        folder = shutil.copytree(trainer_folder / f"checkpoint-{step}", tmp_path / "saved", dirs_exist_ok=True)
        title = f"Training in progress, step {step}" if numbered == "title" else "Training in progress"
        if numbered == "title":
            (folder / "trainer_state.json").unlink()
        commits[step] = hub.push(NAME, "main", folder, title)
    hub.push(NAME, "main", folder, "End of training")  # pushed with the same weights
    added = add([f"hf:{NAME}"], "public")
    commit_of_step = {checkpoint.step: checkpoint.pointer.commit for checkpoint in runs.checkpoints(added.run)}
    assert commit_of_step.keys() == {*STEPS} and commit_of_step[10] == commits[10] and not added.notes
    assert request_count(hub, WEIGHTS) == 0


def test_main_branch_becomes_last_step_if_trainer_counted_it(root, hub, series, trainer_folder, tmp_path):
    """Without a later step in trainer_state.json a note names the branch; weights of an existing step add no step."""
    hub.push(NAME, "main", trainer_folder / "checkpoint-20")
    added = add([f"hf:{NAME}"], "equal")
    assert added.steps == STEPS and not added.notes
    last = shutil.copytree(trainer_folder / "checkpoint-20", tmp_path / "last")
    model_of(30).save_pretrained(last)
    state = json.loads((last / "trainer_state.json").read_text())
    for counted, steps in ((30, (*STEPS, 30)), (10, STEPS), (None, STEPS)):
        (last / "trainer_state.json").unlink()
        if counted:
            (last / "trainer_state.json").write_text(json.dumps(state | {"global_step": counted}))
        hub.push(NAME, "main", last)
        added = add([f"hf:{NAME}"], f"counted{counted}")
        assert added.steps == steps
        assert [f"hf:{NAME}" in note for note in added.notes] == [True] * (steps == STEPS)


def test_babylm_revisions_are_placed_by_words(root, hub, trainer_folder):
    """BabyLM's revisions are named chck_1M to chck_100M."""
    for words, step in ((1, 0), (10, 10), (100, 20)):
        hub.push(NAME, f"chck_{words}M", trainer_folder / f"checkpoint-{step}")
    hub.push(NAME, "main", trainer_folder / "checkpoint-20")
    added = add([f"hf:{NAME}"], "baby")
    assert added.run.step_unit == "words" and added.steps == (10**6, 10**7, 10**8) and not added.notes
    assert runs.read_log(added.run) == []


def test_tokenizer_may_come_from_another_repository(root, hub, series, byte_level, trainer_folder, tmp_path):
    """The tokenizer may be at a revision, at a commit or in a folder; an unknown revision is an error."""
    bare = shutil.copytree(trainer_folder, tmp_path / "bare")
    for step in STEPS:
        for path in (bare / f"checkpoint-{step}").glob("tokenizer*"):
            path.unlink()
    commit = hub.push("owner/tokenizer", "v1", byte_level)
    shutil.copytree(byte_level, tmp_path / "nested" / "small" / "tokenizer")
    hub.push("owner/nested", "main", tmp_path / "nested")
    expected = add([f"hf:{NAME}"], "public").run.tokenizer_sha256
    for name in ("owner/tokenizer@v1", f"owner/tokenizer@{commit}", "owner/nested/small/tokenizer"):
        assert add([str(bare)], "bare", tokenizer=f"hf:{name}").run.tokenizer_sha256 == expected
    with pytest.raises(RunError, match="has no revision 'v2' on the Hub; known: v1"):
        add([str(bare)], "bare", tokenizer="hf:owner/tokenizer@v2")


def test_messages_name_revisions_and_steps_instead_of_commits(root, hub, series, trainer_folder, tmp_path):
    broken = shutil.copytree(trainer_folder / "checkpoint-10", tmp_path / "broken")
    (broken / WEIGHTS).unlink()
    commit = hub.push(NAME, "step10", broken)
    (trouble,) = add([f"hf:{NAME}"], "public").troubles
    assert f"hf:{NAME}@step10 has no config.json, or none of" in trouble and commit[:7] not in trouble
    (broken / "config.json").write_text('{"model_type": "unheard"}')
    (broken / WEIGHTS).write_bytes((trainer_folder / "checkpoint-10" / WEIGHTS).read_bytes())
    hub.push(NAME, "step10", broken)
    (trouble,) = add([f"hf:{NAME}"], "public").troubles
    assert trouble.startswith("Step 10: ")


def test_files_of_another_trainer_on_hub_are_recognised(root, hub, tmp_path):
    """The message names the script that converts them."""
    (tmp_path / "composer").mkdir()
    (tmp_path / "composer" / "ep0-ba1000-rank0.pt").write_bytes(b"")
    hub.push(NAME, "main", tmp_path / "composer")
    with pytest.raises(RunError, match=r"ep0-ba1000-rank0\.pt is a file of Composer: .*convert_composer_to_hf\.py"):
        add([f"hf:{NAME}"], "public")
