"""Tests of the command line: an error is one line on stderr with status 2, and changes nothing on disk."""

import errno
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from embryo_core import runs
from pretrain.__main__ import import_parser, main, parser
from pretrain.batches import prepare_data
from pretrain.families import preset

pytestmark = pytest.mark.usefixtures("eager")
REPOSITORY = Path(__file__).resolve().parents[2]
Refused = Callable[..., str]


@pytest.fixture
def check_refused(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Return a function that checks that these arguments fail without a change on disk, and returns the message."""

    def check(*arguments: str | Path, preset: str = "tiny") -> str:
        before = contents(tmp_path)
        assert main([preset, *map(str, arguments), "--cache", str(cache)]) == 2
        output = capsys.readouterr().err
        assert output.startswith("Error: ") and output.count("\n") == 1 and "Traceback" not in output
        assert output.rstrip()[-1] in ".;" or output.rstrip()[-1].isalnum()
        assert contents(tmp_path) == before
        return output

    return check


def contents(folder: Path) -> dict[str, str]:
    """Return every path below a folder with the SHA-256 of a file, or "folder"."""
    return {str(path): runs.sha256(path) if path.is_file() else "folder" for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def started_run(texts: tuple[Path, Path], cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a run of one update by the command; return its folder."""
    folder = tmp_path_factory.mktemp("runs") / "own"
    assert main(["tiny", "--corpus", str(texts[0]), "--cache", str(cache), "--run", str(folder), "--steps", "1"]) == 0
    return folder


@pytest.fixture
def own_copy(started_run: Path, tmp_path: Path) -> Path:
    """Return a copy of this run."""
    return Path(shutil.copytree(started_run, tmp_path / "own"))


def test_command_writes_complete_run(started_run: Path, texts: tuple[Path, Path]):
    """It has a card, a tokenizer, word frequencies and both checkpoints; run.json has no path of the text."""
    run = runs.read_run(started_run)
    assert (run.family, run.name, run.planned_steps, run.config["vocab_size"]) == ("albert", "own", (0, 1), 500)
    assert runs.sha256(run.tokenizer / "tokenizer.json") == run.tokenizer_sha256 == run.corpus["tokenizer_sha256"]
    assert [checkpoint.step for checkpoint in runs.checkpoints(run)] == [0, 1]
    assert (started_run / "frequencies.tsv").is_file() and str(texts[0].parent) not in (
        started_run / "run.json"
    ).read_text()


def test_unknown_preset_is_refused(check_refused: Refused, tmp_path: Path):
    """The error suggests the nearest known preset."""
    message = check_refused("--corpus", "x", "--run", tmp_path / "run", preset="albert-smal")
    assert "Unknown preset 'albert-smal'. Did you mean 'albert-small'?" in message


def test_misspelt_preset_is_refused_without_tensorflow(tmp_path: Path):
    """A refusal is fast because neither TensorFlow nor Keras is imported."""
    code = (
        "import sys; from pretrain.__main__ import main; code = main(sys.argv[1:]); "
        "sys.exit(99 if {'tensorflow', 'keras'} & set(sys.modules) else code)"
    )
    command = [sys.executable, "-c", code, "tinny", "--corpus", "x", "--run", str(tmp_path / "run")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["--steps", "0"], "steps, received 0, must be at least 1"),
        (["--set", "log_every=0"], "log_every, received 0, must be at least 1"),
        (["--set", "sequence_length=4"], "sequences of 4 tokens are shorter than 16"),
        (["--save", "often"], "--save often: write --save N for every N updates"),
        (["--set", "batch=3"], "Unknown setting 'batch'. Did you mean 'batch_size'?"),
        (["--set", "vocab_size=50_000"], "too small for a vocabulary of 50,000 pieces"),
    ],
)
def test_invalid_settings_are_refused(check_refused: Refused, texts, tmp_path: Path, settings, sentence):
    """They are refused before anything is written."""
    assert sentence in check_refused("--corpus", texts[0], "--run", tmp_path / "run", *settings)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "does not exist; name a text file"),
        (b"\n\n", "has no document of at least 8 words"),
        (b"\xff\xfe\x00bad", "is not UTF-8 text"),
    ],
)
def test_invalid_corpus_is_refused(check_refused: Refused, tmp_path: Path, content: bytes | None, sentence: str):
    """The file is missing, empty, or not text."""
    if content is not None:
        (tmp_path / "text.txt").write_bytes(content)
    assert sentence in check_refused("--corpus", tmp_path / "text.txt", "--run", tmp_path / "run")


def test_folder_that_is_not_a_run_is_unchanged(check_refused: Refused, texts, tmp_path: Path):
    """A folder with other files, a file, and a folder with an invalid run.json are refused."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("years of work")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text('{"name": "br')
    for name in ("thesis", "thesis/chapter1.txt"):
        assert "exists and is not a run (it has no run.json)" in check_refused(
            "--corpus", texts[0], "--run", tmp_path / name
        )
    assert "is not valid" in check_refused("--corpus", texts[0], "--run", tmp_path / "broken")


def test_run_is_pretrained_by_one_process_at_a_time(check_refused: Refused, own_copy: Path, texts):
    """A second process is refused and changes no file of the run."""
    with runs.locked(own_copy):
        message = check_refused("--corpus", texts[0], "--run", own_copy, "--steps", "1")
    assert "own is being pretrained by another process" in message


def test_damaged_cache_is_reported(tmp_path: Path, texts, capsys: pytest.CaptureFixture[str]):
    """The error names the folder to delete, and no run is created."""
    command = ["tiny", "--corpus", str(texts[0]), "--cache", str(tmp_path / "cache"), "--run", str(tmp_path / "run")]
    prepare_data(preset("tiny"), [str(texts[0])], [], tmp_path / "cache")
    (folder,) = (tmp_path / "cache").iterdir()
    with (folder / "train" / "tokens.bin").open("r+b") as file:
        file.write(b"\xff\xff")
    assert main(command) == 2
    output = capsys.readouterr().err
    assert output.count("\n") == 1 and f"delete {folder} and" in output and not (tmp_path / "run").exists()


def test_full_disk_at_checkpoint_is_reported(tmp_path: Path, texts, cache: Path, monkeypatch, capsys):
    """The same command continues the run once there is space."""
    write_bytes = Path.write_bytes

    def write(path: Path, content: bytes) -> int:
        if path.name == "model.safetensors":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write_bytes(path, content)

    command = ["tiny", "--corpus", str(texts[0]), "--cache", str(cache), "--run", str(tmp_path / "run"), "--steps", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write)
        assert main(command) == 2
    output = capsys.readouterr().err.splitlines()[-1]
    assert output.startswith("Error: ") and "No space left on device" in output and "continues from there" in output
    assert main(command) == 0
    assert [checkpoint.step for checkpoint in runs.checkpoints(runs.read_run(tmp_path / "run"))] == [0, 1]


def test_folder_that_cannot_be_created_is_reported(check_refused: Refused, texts, tmp_path: Path):
    """An error of the system, here for a folder below a file, is one line as well."""
    (tmp_path / "file").write_text("")
    assert "Not a directory" in check_refused("--corpus", texts[0], "--run", tmp_path / "file" / "run")


def test_run_resumes_only_with_its_own_settings(check_refused: Refused, own_copy: Path, texts):
    """The error names the value that the run was started with and the received one."""
    arguments = ("--corpus", texts[0], "--run", own_copy)
    assert "started with learning_rate=0.006, received 0.5" in check_refused(
        *arguments, "--steps", "1", "--set", "learning_rate=0.5"
    )
    message = check_refused(*arguments, "--steps", "2", "--set", "warmup_steps=0")
    assert "started with warmup_steps=1, received 0" in message


def test_run_resumes_only_with_its_own_corpus(check_refused: Refused, own_copy: Path, texts, tmp_path: Path):
    """Other text is refused, and the run's tokenizer is unchanged."""
    other = tmp_path / "other.txt"
    other.write_text(texts[0].read_text(encoding="utf-8").replace("the", "some"), encoding="utf-8")
    assert "another corpus or tokenizer" in check_refused("--corpus", other, "--run", own_copy, "--steps", "1")


def test_run_resumes_only_with_its_own_tokenizer(check_refused: Refused, own_copy: Path, texts):
    """A changed tokenizer in the folder of the run is refused."""
    path = own_copy / "tokenizer" / "tokenizer.json"
    changed = json.loads(path.read_text(encoding="utf-8"))
    changed["model"]["vocab"][10][1] -= 1.0
    path.write_text(json.dumps(changed), encoding="utf-8")
    assert "is not the tokenizer that run 'own' was started with" in check_refused(
        "--corpus", texts[0], "--run", own_copy, "--steps", "1"
    )


def test_run_name_is_resolved_in_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """--run NAME is the folder in which the dashboard looks for the run; a path is used unchanged."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    for given, folder in (("first", tmp_path / "runs" / "first"), ("./first", Path("first")), ("a/b", Path("a/b"))):
        assert parser().parse_args(["tiny", "--corpus", "text.txt", "--run", given]).run == folder
        assert import_parser().parse_args(["model.ckpt-1", "--run", given]).run == folder
