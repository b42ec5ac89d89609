"""Tests of continued pretraining: a new run that starts from a checkpoint of another run, on other text."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from embryo_core import runs
from embryo_core.comparison.progress import progress
from embryo_core.curves import baselines
from embryo_core.types import Change, Run
from pretrain.__main__ import main

pytestmark = pytest.mark.usefixtures("eager")
SETTINGS = "--set steps=6 warmup_steps=2 save_every=3 state_every=2 log_every=1 measured_sequences=0".split()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for runs."""
    return tmp_path_factory.mktemp("continued")


@pytest.fixture(scope="module")
def domain(texts: tuple[Path, Path], root: Path) -> Path:
    """Write the sample's documents in reverse order, with "the " replaced by "our "; return the file."""
    documents = texts[0].read_text(encoding="utf-8").replace("the ", "our ").split("\n\n")
    path = root / "domain.txt"
    path.write_text("\n\n".join(reversed(documents)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def first(texts: tuple[Path, Path], cache: Path, root: Path) -> Run:
    """Train for six updates on the sample text; return the run."""
    corpus = ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]
    assert main(["tiny", *corpus, *SETTINGS, "--run", str(root / "first")]) == 0
    return runs.read_run(root / "first")


@pytest.fixture(scope="module")
def command(first: Run, domain: Path, cache: Path) -> list[str]:
    """Return the command of six updates on the other text, from step 3; the run's folder is to be appended."""
    start = ["--init-from", f"{first.path}@3", "--corpus", str(domain), "--cache", str(cache)]
    return ["tiny", *start, *SETTINGS, "--run"]


@pytest.fixture(scope="module")
def continued(command: list[str], root: Path) -> Run:
    """Run this command; return the continued run."""
    assert main([*command, str(root / "second")]) == 0
    return runs.read_run(root / "second")


def weights(run: Run) -> dict[int, str]:
    """Return the SHA-256 of the weights of every checkpoint, by step."""
    return {checkpoint.step: runs.sha256(checkpoint.path / "model.safetensors") for checkpoint in runs.checkpoints(run)}


def test_steps_sequences_and_tokens_continue(first: Run, continued: Run):
    """The new run has the first run's checkpoints up to the start, then the planned ones; no count restarts."""
    checkpoints = runs.checkpoints(continued)
    assert [checkpoint.step for checkpoint in checkpoints] == [0, 1, 2, 3, 4, 5, 6, 9] == list(continued.planned_steps)
    assert checkpoints[3].sequences == runs.checkpoint(first, 3).sequences and checkpoints[-1].sequences == 9 * 8
    assert all(earlier.tokens < later.tokens for earlier, later in pairwise(checkpoints))


def test_continued_run_starts_from_first_run_weights(first: Run, continued: Run):
    """Checkpoints up to the start are links to the first run's files, which take no space; later ones differ."""
    ours, theirs = weights(continued), weights(first)
    assert all(ours[step] == theirs[step] for step in (0, 1, 2, 3)) and ours[6] != theirs[6]
    files = [run.path / "checkpoints" / "step1" / "model.safetensors" for run in (first, continued)]
    assert files[0].stat().st_ino == files[1].stat().st_ino
    change = [load_file(runs.checkpoint(continued, step).path / "model.safetensors") for step in (3, 4)]
    peak = 6e-3 / 2  # the rate of the first update in a warm-up of two
    moved = [np.linalg.norm(change[1][name] - array) / np.linalg.norm(array) for name, array in change[0].items()
             if name.endswith("embeddings.weight")]  # fmt: skip
    assert max(moved) <= peak * (1 + 1e-3) and min(moved) > 0, "LAMB changes a matrix by the rate times its norm"


def test_log_continues_first_run_log(first: Run, continued: Run):
    """Rows before the start are the first run's; updates are counted on, and the learning rate warms up again."""
    ours, theirs = runs.read_log(continued), runs.read_log(first)
    assert [row for row in ours if row["step"] < 3] == [row for row in theirs if row["step"] < 3]
    assert [row["step"] for row in ours if row["split"] == "train"] == list(range(1, 10))
    assert [row["learning_rate"] for row in ours if row["split"] == "train"][3:] == [
        row["learning_rate"] for row in theirs if row["split"] == "train"
    ]


def test_card_records_origin_and_change_of_text(first: Run, continued: Run):
    """The origin has the run, step and hash of the weights; tokenizer and word frequencies are the first run's."""
    assert (continued.origin.run, continued.origin.step) == ("first", 3)
    assert continued.origin.weights_sha256 == weights(first)[3]
    assert runs.changes(continued) == (Change(3, "corpus: domain.txt"),)
    assert continued.tokenizer_sha256 == first.tokenizer_sha256
    assert runs.read_ranks(continued.path / "frequencies.tsv") == runs.read_ranks(first.path / "frequencies.tsv")


def test_resumed_run_has_same_weights_and_log(continued: Run, command: list[str], root: Path):
    """This holds with its earlier state or none, and even if the first run no longer exists."""

    def rows(run: Run) -> list[dict]:
        return [row | {"tokens_per_second": None, "time": None} for row in runs.read_log(run)]

    folder = root / "again"
    shutil.copytree(continued.path, folder)
    for states in (1, 2):
        for path in sorted((folder / "state").iterdir())[-states:]:
            path.unlink()
        again = ["nowhere/first" if part.endswith("@3") else part for part in command]
        assert main([*again, str(folder)]) == 0
        new_run = runs.read_run(folder)
        assert weights(new_run) == weights(continued)
        assert rows(new_run) == rows(continued)


def test_run_killed_at_its_start_is_completed(continued: Run, command: list[str], root: Path):
    """With run.json written and only one of the first run's checkpoints linked, the same command completes the run."""
    folder = root / "killed"
    shutil.copytree(continued.path / "tokenizer", folder / "tokenizer")
    shutil.copy(continued.path / "run.json", folder)
    shutil.copytree(continued.path / "checkpoints" / "step0", folder / "checkpoints" / "step0")
    assert main([*command, str(folder)]) == 0
    assert weights(runs.read_run(folder)) == weights(continued)


def test_continued_run_can_be_continued(continued: Run, command: list[str], root: Path):
    """Its changes follow those of the earlier runs; --init-from also accepts the folder of a checkpoint."""
    start = continued.path / "checkpoints" / "step5"
    again = [str(start) if part.endswith("@3") else part for part in command]
    assert main([*again[:-1], "steps=1", "warmup_steps=1", "--run", str(root / "third")]) == 0
    run = runs.read_run(root / "third")
    assert runs.changes(run) == (Change(3, "corpus: domain.txt"), Change(5, "same text, new warm-up"))
    assert [checkpoint.step for checkpoint in runs.checkpoints(run)] == [0, 1, 2, 3, 4, 5, 6]


def test_same_text_is_recorded_as_new_warm_up(first: Run, command: list[str], texts: tuple[Path, Path], root: Path):
    """The warm-up is the run's only change, and the same command resumes the run."""
    at = command.index("--corpus") + 1
    again = [*command[:at], str(texts[0]), "--heldout", str(texts[1]), *command[at + 1 :]]
    for _ in range(2):
        assert main([*again[:-1], "steps=1", "warmup_steps=1", "--run", str(root / "same")]) == 0
    assert runs.changes(runs.read_run(root / "same")) == (Change(3, "same text, new warm-up"),)


def test_words_are_counted_on_first_text(first: Run, continued: Run):
    """Words at step 3 and the most-frequent-word baseline are equal in both runs, and None without text_tokens."""
    ours, theirs = progress(continued, "words"), progress(first, "words")
    assert ours.at([3]) == pytest.approx(theirs.at([3])) and baselines.most_frequent_word(
        continued
    ) == baselines.most_frequent_word(first)
    card = json.loads((continued.path / "run.json").read_text())
    older = replace(continued, origin=replace(continued.origin, text_tokens=0))  # as in an earlier version
    assert card["origin"]["text_tokens"] == first.corpus["train"]["tokens"] != continued.corpus["train"]["tokens"]
    assert continued.corpus["counted_words"] == first.corpus["counted_words"] == runs.counted_words(first)
    assert progress(older, "words") is None and baselines.most_frequent_word(older) is None


def test_run_from_start_of_continued_run_resumes(continued: Run, command: list[str], root: Path):
    """Its origin is the continued run, not the first one."""
    again = [f"{continued.path}@3" if part.endswith("@3") else part for part in command]
    for _ in range(2):
        assert main([*again[:-1], "steps=1", "warmup_steps=1", "--run", str(root / "fourth")]) == 0
    run = runs.read_run(root / "fourth")
    assert (run.origin.run, run.origin.step) == ("second", 3)
    assert run.origin.text_tokens == continued.origin.text_tokens


def test_unknown_counts_stay_unknown(first: Run, command: list[str], root: Path):
    """Imported checkpoints have no counts, so there is no total to which later updates could be added."""
    foreign = shutil.copytree(first.path, root / "foreign")
    runs.record_counted_words(runs.read_run(foreign), 98_765)  # of the text behind the inherited frequencies.tsv
    for path in foreign.glob("checkpoints/*/manifest.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"sequences": None, "tokens": None}))
    again = [f"{foreign}@3" if part.endswith("@3") else part for part in command]
    assert main([*again, str(root / "fifth")]) == 0
    (root / "fifth" / "state" / "step9.npz").unlink()
    assert main([*again, str(root / "fifth")]) == 0
    run = runs.read_run(root / "fifth")
    assert runs.counted_words(run) == 98_765
    assert [(checkpoint.sequences, checkpoint.tokens) for checkpoint in runs.checkpoints(run)] == [(None, None)] * 8
    assert all("tokens" not in row for row in runs.read_log(run) if row["step"] > 3)
    assert progress(run, "tokens") is None and progress(run, "sequences") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--init-from": "first@4"}, "no checkpoint at step 4; the nearest is 3"),
        ({"--init-from": "frist"}, "Unknown run 'frist'"),
        ({"settings": ["vocab_size=600"]}, "has vocab_size 500, but these settings give 600. A continued"),
        ({"settings": ["num_hidden_layers=3"]}, "has num_hidden_layers 2, but these settings give 3"),
        ({"settings": ["tokenizer=wordpiece"]}, "is a unigram vocabulary, but these settings have tokenizer=wordpiece"),
    ],
    ids=("step", "run", "vocabulary", "layers", "kind of vocabulary"),
)
def test_impossible_continuation_is_refused(
    first: Run, command: list[str], root: Path, monkeypatch, capsys, change: dict, message: str
):
    """The command returns 2, names the problem and creates no run."""
    (root / "data").mkdir(exist_ok=True)
    if not (root / "data" / "runs").exists():
        (root / "data" / "runs").symlink_to(root)
    monkeypatch.setenv("EMBRYO_DATA", str(root / "data"))
    arguments = [change.get("--init-from", part) if part.endswith("@3") else part for part in command]
    assert main([*arguments[:-1], *change.get("settings", []), "--run", str(root / "refused")]) == 2
    assert message in capsys.readouterr().err
    assert not (root / "refused").exists()


def test_run_that_points_to_its_weights_is_not_continued(first: Run, command: list[str], root: Path, capsys):
    """The error names this run, and no new one is created."""
    pointing = Path(shutil.copytree(first.path, root / "pointing"))
    folder = pointing / "checkpoints" / "step3"
    (folder / "model.safetensors").rename(root / "elsewhere.safetensors")
    manifest = json.loads((folder / "manifest.json").read_text())
    sha256 = manifest["sha256"].pop("model.safetensors")
    manifest["weights"] = {"file": str(root / "elsewhere.safetensors"), "sha256": sha256}
    runs.write_json(folder / "manifest.json", manifest)
    runs.record_added(pointing, [str(root)])
    arguments = [f"{pointing}@3" if part.endswith("@3") else part for part in command]
    assert main([*arguments, str(root / "refused")]) == 2
    assert "Run 'pointing' points to its weights" in capsys.readouterr().err and not (root / "refused").exists()


def test_changed_vocabulary_is_not_continued(first: Run, command: list[str], root: Path, tmp_path: Path, capsys):
    """The model would read ids that differ from those of its training; no run is created."""
    changed = Path(shutil.copytree(first.path, tmp_path / "changed"))
    with (changed / "tokenizer" / "tokenizer.json").open("a") as file:
        file.write(" ")
    arguments = [f"{changed}@3" if part.endswith("@3") else part for part in command]
    assert main([*arguments, str(root / "refused")]) == 2
    assert "is not the vocabulary that run 'changed' was trained with" in capsys.readouterr().err
    assert not (root / "refused").exists()


def test_run_resumes_only_with_its_original_start(first: Run, continued: Run, command: list[str], domain, capsys):
    """A different --init-from, or a missing one, is refused, and run.json is unchanged."""
    before = (continued.path / "run.json").read_bytes()
    without = [part for part in command if part != "--init-from" and not part.endswith("@3")]
    other = [part.replace("@3", "@2") for part in command]
    for arguments, message in ((without, "started with --init-from first@3; resume"), (other, "received --init-from")):
        assert main([*arguments, str(continued.path)]) == 2
        assert message in capsys.readouterr().err
    assert main([*command, str(first.path)]) == 2
    assert "was started with no --init-from" in capsys.readouterr().err
    assert (continued.path / "run.json").read_bytes() == before
    assert json.loads(before)["origin"]["run"] == "first"
