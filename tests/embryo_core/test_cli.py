"""Tests of the command line: it prints what was asked, reports errors in one sentence, and documents every command."""

import json
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from embryo_core import metrics, results, runs
from embryo_core.cli import main
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run
from tests.embryo_core.toy_metric import LastPiece

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def root(tiny_results: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the tiny run and its results into a data root for this test."""
    shutil.copytree(tiny_results.path.parents[1], tmp_path / "data")
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_examples_are_found_stored_and_printed(root, capsys, tmp_path):
    """Each line has the text and the word; the Query page reads the examples from the results."""
    questions = tmp_path / "questions.tsv"
    questions.write_text("The cat [MASK] on the mat .\tsat\nThe [MASK] sat .\tcat\n")
    assert main(["examples", "tiny", "--questions", str(questions)]) == 0
    examples = results.read_example_questions(runs.open_run("tiny"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(examples) > 0
    assert all(line.startswith(f"{example.text}  {example.word}, ") for line, example in zip(lines, examples))


def test_control_characters_are_escaped_in_output(root, capsys):
    """A run.json from another person may contain them."""
    card = root / "runs" / "tiny" / "run.json"
    content = json.loads(card.read_text())
    content["corpus"]["sources"] = ["\x1b[2J\x07text"]
    card.write_text(json.dumps(content))
    assert main(["compare", "tiny"]) == 0
    assert "\\x1b[2J\\x07text" in (printed := capsys.readouterr().out) and "\x1b" not in printed and "\n" in printed


def test_runs_lists_checkpoints_and_results(root, capsys):
    """Each run has a line; metrics computed at the same number of steps share one."""
    assert main(["runs"]) == 0
    output = capsys.readouterr().out
    assert "tiny  albert, 3 checkpoints, steps 0 to 16" in output
    (listed,) = re.findall("    3 steps: (.*(?:\n        .*)*)", output)
    assert {"mask_prediction", "attention"} <= set(re.split(r",\s+", listed))


def test_commands_name_the_unit_of_steps(root, capsys, tmp_path, monkeypatch):
    """The steps of this run count words: in the list, an animation, an example, and a report of removed weights."""
    card = root / "runs" / "tiny" / "run.json"
    card.write_text(json.dumps(json.loads(card.read_text()) | {"counted_in": "words"}))
    assert main(["runs"]) == 0
    assert "tiny  albert, 3 checkpoints, 0 to 16 words" in capsys.readouterr().out
    assert main(["animate", "tiny", "--layer", "2", "--head", "1", "-o", str(tmp_path / "head.gif")]) == 0
    assert "3 checkpoints, 0 to 16 words" in capsys.readouterr().out
    questions = tmp_path / "questions.tsv"
    questions.write_text("The cat [MASK] on the mat .\tsat\n")
    tiny = runs.open_run("tiny")
    examples = [ExampleQuestion("a [MASK]", "b", since) for since in (None, 8)]
    monkeypatch.setattr("embryo_core.query.find_examples", lambda *_: examples)
    assert main(["examples", "tiny", "--questions", str(questions)]) == 0
    assert capsys.readouterr().out == "a [MASK]  b, not learned yet\na [MASK]  b, learned at 8 words\n"
    assert main(["runs", "--thin", "tiny", "--keep", "0", "16", "--yes"]) == 0
    assert "8 words: weights, " in capsys.readouterr().out
    assert runs.explain_missing_weights(runs.checkpoints(tiny)) == ["2 of 3 checkpoints kept their weights."]


def test_runs_reports_what_is_broken_and_lists_the_rest(root, capsys):
    """A broken run, checkpoint or result costs one sentence, and the exit status is 1."""
    runs_folder = root / "runs"
    for name in ("alone", "cyclic"):
        (runs_folder / name).mkdir()
    (runs_folder / "alone" / "run.json").write_text("5")
    (runs_folder / "cyclic" / "run.json").symlink_to("run.json")
    (runs_folder / "tiny" / "checkpoints" / "step8" / "manifest.json").write_text("{}")
    (root / "results" / "tiny" / "sources.json").write_text('{"attention": {"note": 5}}')
    assert main(["runs"]) == 1
    output = capsys.readouterr()
    assert "tiny  albert, 2 checkpoints, steps 0 to 16" in output.out
    for name in ("alone/run.json", "cyclic/run.json", "step8/manifest.json", "sources.json"):
        assert f"{name} " in output.err
    assert output.err.count("Broken: ") == 4


def test_runs_counts_damaged_log_lines(root, capsys):
    """Every page leaves them out, and this command reports them."""
    with (root / "runs" / "tiny" / "log.jsonl").open("ab") as file:
        file.write(b'\xff\n{"split": "tr')
    assert main(["runs"]) == 0
    assert "log.jsonl: 2 damaged lines left out" in capsys.readouterr().out


def test_thin_removes_weights_only_with_yes(root, capsys):
    """Without --yes the command lists them. Results stay, and `runs` then counts the checkpoints without weights."""
    weights = root / "runs" / "tiny" / "checkpoints" / "step8" / "model.safetensors"
    size = f"{weights.stat().st_size / 1e6:.1f} MB"
    command = ["runs", "--thin", "tiny", "--keep", "0", "every:16"]
    assert main(command) == 0
    output = capsys.readouterr().out
    assert f"step 8: weights, {size}" in output and f"with --yes frees {size} in 1 of 3 checkpoints" in output
    assert weights.is_file()
    before = results.read_scores(runs.open_run("tiny"))
    assert main([*command, "--yes"]) == 0
    assert f"Removed: {size} in 1 of 3" in capsys.readouterr().out
    assert not weights.exists() and results.read_scores(runs.open_run("tiny")).equals(before)
    assert main(["runs"]) == 0
    assert "3 checkpoints, steps 0 to 16, 1 without weights" in capsys.readouterr().out


def test_runs_continues_after_damaged_result(root, tiny_run, capsys):
    """The run's log and the later runs are listed as usual."""
    shutil.copytree(tiny_run.path, root / "runs" / "ugly")
    (root / "results" / "tiny" / "scores.parquet").write_bytes(b"x")
    with (root / "runs" / "tiny" / "log.jsonl").open("ab") as file:
        file.write(b"\xff\n")
    assert main(["runs"]) == 1
    output = capsys.readouterr()
    assert "log.jsonl: 1 damaged line left out" in output.out and "ugly  albert, 3 checkpoints" in output.out
    assert output.err.count("\n") == 1 and "scores.parquet cannot be read" in output.err


def test_runs_without_runs_says_how_to_start_one(capsys):
    """An empty data root is no error."""
    assert main(["runs"]) == 0
    assert "python -m pretrain" in capsys.readouterr().out


def test_evaluate_computes_and_counts_results(root, sample, capsys):
    """A second call skips what the first one computed."""
    command = ["evaluate", "tiny", "--metrics", "attention", "--treebank", str(sample / "treebank.conllu")]
    shutil.rmtree(root / "results")
    assert main([*command, "--steps", "0", "8"]) == 0
    assert "2 results computed, 0 done before" in capsys.readouterr().out
    assert main(command) == 0
    assert "1 result computed, 2 done before" in capsys.readouterr().out


def test_evaluate_with_broken_checkpoint_ends_with_status_1(root, sample, capsys):
    """The other checkpoints are evaluated; stderr has the failure."""
    (root / "runs" / "tiny" / "checkpoints" / "step8" / "model.safetensors").unlink()
    command = ["evaluate", "tiny", "--metrics", "attention", "--treebank", str(sample / "treebank.conllu")]
    assert main([*command, "--overwrite"]) == 1
    output = capsys.readouterr()
    assert "2 results computed" in output.out
    assert "Failed: " in output.err and "model.safetensors does not exist" in output.err


def test_folder_adds_a_probing_task(root, sample, capsys, short_probing):
    """Its scores join those of the four tasks; one line lists the metrics left out for missing data."""
    shutil.rmtree(root / "results")
    mine = sample / "probing" / "coref"
    command = ["evaluate", "tiny", "--steps", "16", "--probing", str(sample / "probing"), "--limit", "4"]
    assert main([*command, "--probe", f"mine={mine}", "--probe-memory", "1"]) == 0
    output = capsys.readouterr().out
    assert "Left out, because no data were given: token_reconstruction (--treebank), " in output
    assert "2 results computed" in output
    scores = results.read_scores(runs.open_run("tiny"), "edge_probing_f1")
    assert set(scores["group"]) == {"pos", "constituent", "coref", "srl", "mine"}
    assert main(["runs"]) == 0
    assert "1 step: edge_probing, edge_probing:mine\n" in capsys.readouterr().out


def test_added_metric_with_own_data_is_evaluated(root, tmp_path, monkeypatch, capsys):
    """A metric in METRICS has options, is computed on its data, skipped when done, and listed by `runs`."""
    monkeypatch.setattr(metrics, "METRICS", (*metrics.METRICS, LastPiece()))
    proverbs = tmp_path / "proverbs.txt"
    proverbs.write_text("Time flies .\nThe river runs to the sea .\nHaste makes waste .\n")
    shutil.rmtree(root / "results")
    command = ["evaluate", "tiny", "--metrics", "last_piece", "--limit", "2"]
    assert main([*command, "--data", f"proverbs={proverbs}", "--steps", "8"]) == 0
    assert "1 result computed" in capsys.readouterr().out
    assert main([*command, "--proverbs", str(proverbs)]) == 0
    assert "2 results computed, 1 done before" in capsys.readouterr().out
    scores = results.read_scores(runs.open_run("tiny"), "last_piece")
    assert list(scores["step"]) == [0, 8, 16] and set(scores["n"]) == {2}
    assert main(["runs"]) == 0
    assert "3 steps: last_piece\n" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["evaluate", "-h"])
    assert "text file with a proverb a line" in capsys.readouterr().out


def test_query_answers_at_one_step(root, capsys):
    """The option --top sets the number of pieces."""
    assert main(["query", "tiny", "The [MASK] runs .", "--step", "16", "--top", "3"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("tiny, step 16")
    assert [line.split()[0] for line in output.splitlines()[-3:]] == ["1", "2", "3"]


def test_query_answers_at_all_steps(root, capsys):
    """The table has every step."""
    assert main(["query", "tiny", "The [MASK] runs ."]) == 0
    first_words = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line]
    assert [word for word in first_words if word.isdecimal()] == ["0", "8", "16"]


@pytest.mark.parametrize("what", [[], ["--lens"], ["--track", "river"]])
def test_long_series_is_asked_at_log_spaced_steps(root, capsys, monkeypatch, what):
    """The Query page does the same; `--step all` asks at every step, `--steps` at the named ones."""
    monkeypatch.setattr("embryo_core.query.asking.FIRST_ROUND_SIZE", 2)
    command = ["query", "tiny", "The [MASK] runs .", *what]
    asked = {(): ["0", "16"], ("--step", "all"): ["0", "8", "16"], ("--steps", "8", "16"): ["8", "16"]}
    for steps, expected in asked.items():
        assert main([*command, *steps]) == 0
        output = capsys.readouterr().out
        rows = [line.split()[0] for line in output.splitlines() if line.startswith(" ")]
        assert [row for row in rows if row.isdecimal()] == expected
        assert ("2 of 3 checkpoints" in output and "--step all" in output) == (not steps)


@pytest.mark.parametrize(("name", "begins"), [("head.gif", b"GIF89a"), ("head.html", b"<!DOCTYPE html>")])
def test_animate_writes_the_format_of_the_suffix(root, tmp_path, capsys, name, begins):
    """One line of output describes the content of the file."""
    path = tmp_path / name
    assert main(["animate", "tiny", "--layer", "2", "--head", "1", "-o", str(path)]) == 0
    assert path.read_bytes().startswith(begins)
    assert f"{path}: tiny, layer 2, head 1, 3 checkpoints, steps 0 to 16" in capsys.readouterr().out


def test_query_tracks_a_word(root, capsys):
    """Each step has a line; a text and a word that begin with "-" are read literally."""
    assert main(["query", "tiny", "--step", "all", "--track", "rivers", "--", "- The [MASK] run ."]) == 0
    output = capsys.readouterr().out
    assert "- The [MASK]" in output and "2 pieces, river ##s" in output
    assert [line.split()[0] for line in output.splitlines()[-3:]] == ["0", "8", "16"]
    assert main(["query", "tiny", "--step", "8", "--track=-", "--", "A [MASK] ."]) == 2
    assert "'-' has characters that are not in the vocabulary" in capsys.readouterr().err


def test_query_reads_every_layer(root, capsys):
    """At all steps it prints the best word of each layer; at one step the best words of the layers side by side."""
    assert main(["query", "tiny", "--lens", "The [MASK] runs ."]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].split("  ")[-1].strip() == "layer 2" and len(rows) == 3 + 3
    assert main(["query", "tiny", "--lens", "--step", "16", "--top", "3", "The [MASK] runs ."]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].split() == ["layer", "1", "2", "3"] and [row.split()[0] for row in rows[3:]] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "tyni"], "Unknown run 'tyni'. Did you mean 'tiny'?"),
        (["evaluate", "/"], "The folder / is not a run: it has no run.json"),
        (["evaluate", "tiny", "--metrics", "pos"], "Unknown metric 'pos'."),
        (["evaluate", "tiny", "--treebank", "none.conllu"], "none.conllu does not exist"),
        (["evaluate", "tiny", "--metrics", "attention", "--lama-variants", "none"], "none does not exist"),
        (["evaluate", "tiny", "--metrics", "attention", "--squad", "none"], "none does not exist"),
        (["evaluate", "tiny", "--data", "tree=x"], "Unknown data 'tree'. Did you mean 'treebank'?"),
        (["evaluate", "tiny", "--data", "lama:own=x"], "Unknown data 'lama:own'. Known: probing:NAME."),
        (["evaluate", "tiny", "--probe", "pos=x", "--overwrite"], "cannot be named 'pos'"),
        (["evaluate", "tiny", "--probe", "a=x", "--probe", "a=y"], "The data 'probing:a' are given twice"),
        (["evaluate", "tiny", "--probe", "mine=none", "--overwrite"], "none does not exist"),
        (["evaluate", "tiny", "--metrics", "edge_probing", "--probing", "none", "--overwrite"], "none does not exist"),
        (["fetch", "ontonotes"], "OntoNotes"),
        (["animate", "tyni", "--layer", "1", "--head", "1", "-o", "a.gif"], "Did you mean 'tiny'?"),
        (["animate", "tiny", "--layer", "1", "--head", "9", "-o", "a.gif"], "its heads 1 to 2"),
        (["animate", "tiny", "--layer", "1", "--head", "1", "-o", "a.mp4"], "ends in none of .gif, .html"),
        (["animate", "tiny", "--layer", "1", "--head", "1", "-o", "none/a.gif"], "none/a.gif"),
        (["runs", "--thin", "tyni", "--keep", "0"], "Did you mean 'tiny'?"),
        (["runs", "--thin", "tiny", "--keep", "7"], "no checkpoint at step 7; the nearest is 8"),
        (["runs", "--thin", "tiny"], "runs --thin RUN --keep every:1000"),
        (["runs", "--keep", "0"], "runs --thin RUN --keep every:1000"),
        (["query", "tiny", "No gap here."], "has no [MASK]"),
        (["query", "tiny", "The [MASK] .", "--step", "7"], "no checkpoint at step 7; the nearest is 8"),
        (["query", "tiny", "[MASK] " + "word " * 2000, "--step", "8"], "Shorten it"),
        (["query", "tiny", "The [MASK] .", "--mask", "2", "--lens"], "There is no [MASK] 2: the text has 1"),
        (["query", "tiny", "The [MASK] .", "--mask", "2"], "--mask is for --track or --lens"),
        (["query", "tiny", "The [MASK] .", "--track", " "], "The word to track is empty"),
        (["examples", "tiny", "--questions", "none.tsv"], "none.tsv cannot be read (No such file or directory)"),
        (["finetune", "tiny", "--glue", "none"], "none is not a folder"),
    ],
)
def test_errors_are_one_sentence_and_status_2(root, capsys, arguments, message):
    """Errors go to stderr, without a traceback."""
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert message in output.err and output.err.startswith("Error: ") and "Traceback" not in output.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "tiny", "--limit", "0"],
        ["runs", "--thin", "tiny", "--keep", "every:0"],
        ["evaluate", "tiny", "--probe", "mine"],
        ["evaluate", "tiny", "--data", "treebank"],
        ["evaluate", "tiny", "--protocol", "slow"],
        ["finetune", "tiny", "--protocol", "slow"],
        ["app", "--port", "65536"],
        ["query", "tiny", "x", "--step", "no"],
        ["query", "tiny", "x", "--step", "8", "--steps", "0", "8"],
        [],
    ],
)
def test_invalid_arguments_print_the_usage(arguments, capsys):
    """The exit status is 2."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage: python -m embryo_core" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "stopped_in"),
    [
        (["evaluate", "tiny", "--overwrite"], "embryo_core.results.write"),
        (["query", "tiny", "The [MASK] runs ."], "embryo_core.query.report.report_history"),
    ],
    ids=("evaluate", "query"),
)
def test_ctrl_c_is_one_line_and_status_130(root, sample, command, stopped_in):
    """The process ends at once, although another thread is still computing."""
    data = ["--treebank", str(sample / "treebank.conllu")] if command[0] == "evaluate" else []
    module, _, function = stopped_in.rpartition(".")
    code = (
        "import os, runpy, signal, threading, time, importlib\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # background processes of a shell ignore it
        "def stop(*_):\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(600)\n"
        f"setattr(importlib.import_module({module!r}), {function!r}, stop)\n"
        "runpy.run_module('embryo_core', run_name='__main__', alter_sys=True)\n"
    )
    start = [sys.executable, "-c", code, *command, *data]
    done = subprocess.run(start, cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "Stopped; what was written is kept." and "Traceback" not in done.stderr


def test_version_names_packages_without_importing_them():
    """Embryo, Python and the installed packages have a line each; no heavy package is imported."""
    code = (
        "import sys; from embryo_core.cli import main\n"
        "try: main(['--version'])\n"
        "finally: assert not {'torch', 'transformers', 'streamlit', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False, capture_output=True, text=True)
    printed = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert done.returncode == 0, done.stderr
    assert printed["python"] == platform.python_version()
    assert {name: printed[name] for name in ("torch", "streamlit")} == {
        name: metadata.version(name) for name in ("torch", "streamlit")
    }


def test_fetch_does_not_import_numpy():
    """Only `evaluate` imports what the metrics need."""
    code = "import sys; from embryo_core.cli import main; main(['fetch', 'ontonotes']); "
    code += "assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True, capture_output=True)


@pytest.mark.parametrize(
    "words",
    [
        "animate tiny --layer 1.5 --head 1 -o head.gif",
        "query tiny [MASK] --top 1.5",
        "query tiny [MASK] --steps 0 1.5",
        "evaluate tiny --steps 1.5",
        "evaluate tiny --limit 1.5",
        "finetune tiny --steps 1.5",
        "add folder --name x --steps 1.5",
        "app --port 1.5",
    ],
)
def test_fractional_number_is_refused_where_integer_is_needed(words, capsys):
    """The error names the value and what is expected."""
    with pytest.raises(SystemExit):
        main(words.split())
    assert "received '1.5'; give a whole number" in capsys.readouterr().err
