"""Checkpoints fetched over HTTP by huggingface_hub itself, from a Hub on this machine."""

import threading
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import close_session, constants

from embryo_core import results, runs
from embryo_core.cli import main
from embryo_core.engine import hub_cache
from embryo_core.errors import MissingWeights, RunError
from embryo_core.runs import hub_folder
from embryo_core.sources import add
from tests.conftest import SAMPLE
from tests.embryo_core.sources.conftest import STEPS
from tests.embryo_core.sources.hub_server import HubServer

NAME = "owner/series"
WEIGHTS = "model.safetensors"
TREEBANK = ("--treebank", str(SAMPLE / "treebank.conllu"), "--metrics", "mask_prediction")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """Return a Hub with nothing on it in place of the real one, and an empty cache; no proxy comes between."""
    server = HubServer()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    form = server.address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", form)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)  # before it tries again
    monkeypatch.setattr(hub_cache, "_unreached", (float("-inf"), ""))
    close_session()  # whose client has the proxies of before
    yield server
    close_session()
    server.shutdown()
    server.server_close()


@pytest.fixture
def series(hub: HubServer, trainer_folder: Path) -> dict[int, str]:
    """Return the Trainer's checkpoints as revisions of one repository; commits by step."""
    return {step: hub.push(NAME, f"step{step}", trainer_folder / f"checkpoint-{step}") for step in STEPS}


def fetched(hub: HubServer, name: str) -> int:
    """How often the content of a file was asked for."""
    return sum(n for asked, n in hub.asked.items() if asked.startswith("GET") and asked.endswith(f"/{name}"))


def kept(name: str) -> list[Path]:
    """Return the files of this name in the cache."""
    return [path for path in hub_folder(NAME).glob(f"snapshots/*/{name}") if path.exists()]


def test_a_series_is_added_without_its_weights(root, hub, series):
    """What a run needs of each revision is fetched; weights are fetched when a step is asked for, once."""
    run = add([f"hf:{NAME}"], "public").run
    found = runs.checkpoints(run)
    assert {one.step: one.pointer.commit for one in found} == series
    assert fetched(hub, WEIGHTS) == 0 and fetched(hub, "config.json") > 0
    one = runs.checkpoint(run, 10)
    assert hub_cache.fetch_checkpoint(one) and not hub_cache.fetch_checkpoint(one)
    runs.verify(one)
    assert fetched(hub, WEIGHTS) == 1 and len(kept(WEIGHTS)) == 1


def test_an_evaluation_fetches_each_checkpoint_once_and_discards_it(root, hub, series, trainer_folder):
    """Its scores are those of the folders that the revisions were made of."""
    assert main(["add", f"hf:{NAME}", "--name", "public"]) == 0
    assert main(["add", str(trainer_folder), "--name", "local"]) == 0
    for name, *more in (("public", "--discard"), ("local",)):
        assert main(["evaluate", name, *TREEBANK, *more]) == 0
    one, other = (results.read_scores(runs.open_run(name)).drop(columns="run") for name in ("public", "local"))
    assert one.equals(other) and set(one["step"]) == set(STEPS)
    assert fetched(hub, WEIGHTS) == len(STEPS) and not kept(WEIGHTS) and len(kept("config.json")) == len(STEPS)


def test_a_branch_that_moves_changes_no_run(root, hub, series, trainer_folder):
    """The commit of the time of adding is fetched."""
    run = add([f"hf:{NAME}"], "public").run
    hub.push(NAME, "step10", trainer_folder / "checkpoint-20")
    hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
    runs.verify(runs.checkpoint(run, 10))
    assert kept(WEIGHTS)[0].parent.name == series[10]
    assert kept(WEIGHTS)[0].read_bytes() == (trainer_folder / "checkpoint-10" / WEIGHTS).read_bytes()


def test_a_family_of_repositories_is_listed(root, hub, trainer_folder):
    """Those of its owner whose names tell a step; others are left alone."""
    for step in STEPS:
        hub.push(f"owner/seed_0-step_{step}k", "main", trainer_folder / f"checkpoint-{step}")
    hub.push("owner/seed_1-step_5k", "main", trainer_folder / "checkpoint-0")
    hub.push("other/seed_0-step_7k", "main", trainer_folder / "checkpoint-0")
    run = add(["hf:owner/seed_0-step_{step}k"], "family").run
    assert [one.step for one in runs.checkpoints(run)] == [1000 * step for step in STEPS]


def test_a_download_that_breaks_off_is_one_sentence(root, hub, series):
    """Nothing of it is taken for the file, which comes whole the next time."""
    run = add([f"hf:{NAME}"], "public").run
    hub.cut.add(WEIGHTS)
    with pytest.raises(MissingWeights, match=rf"of hf:{NAME}@{series[10][:7]} cannot be fetched \(peer closed"):
        hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
    assert not kept(WEIGHTS)
    hub.cut.clear()
    hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
    runs.verify(runs.checkpoint(run, 10))


def test_a_hub_that_is_not_reached_is_asked_once_for_all_steps(root, hub, series, monkeypatch):
    """And again after a while; what is in the cache is there all along."""
    run = add([f"hf:{NAME}"], "public").run
    hub.shutdown()
    hub.server_close()
    close_session()  # whose connection would still be answered
    asked, sentences = [], []
    download = huggingface_hub.hf_hub_download
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *a, **b: asked.append(a) or download(*a, **b))
    for again in (hub_cache.RETRY_AFTER, hub_cache.RETRY_AFTER, 0):
        monkeypatch.setattr(hub_cache, "RETRY_AFTER", again)
        with pytest.raises(MissingWeights, match=rf"{WEIGHTS} of hf:{NAME}@.* cannot be fetched \(") as error:
            hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
        sentences.append(str(error.value))
        assert hub_cache.fetch_file(NAME, series[10], "config.json").exists()
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
def test_what_the_hub_refuses_is_one_sentence(root, hub, series, answer, why):
    """While it is asked for revisions, and while weights are fetched."""
    run = add([f"hf:{NAME}"], "public").run
    hub.refused[NAME] = answer
    with pytest.raises(RunError, match=rf"The Hub does not list hf:{NAME} \({why}") as error:
        add([f"hf:{NAME}"], "again")
    assert "\n" not in str(error.value)
    with pytest.raises(MissingWeights, match=rf"cannot be fetched \({why}") as error:
        hub_cache.fetch_checkpoint(runs.checkpoint(run, 10))
    assert "\n" not in str(error.value)
