"""Tests of finding runs by name or path, of listing them, and of reporting those that cannot be read."""

import json
import os
import shutil
from dataclasses import replace

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun, UnknownRun
from embryo_core.runs import layout
from embryo_core.types import Change, Origin, Run


def test_roots_come_from_environment(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """EMBRYO_DATA is a list of folders like PATH, in order of priority."""
    monkeypatch.setenv("EMBRYO_DATA", os.pathsep.join((str(tmp_path / "a"), str(tmp_path / "b"))))
    assert runs.roots() == [tmp_path / "a", tmp_path / "b"]


def test_default_roots_are_data_and_demo(monkeypatch: pytest.MonkeyPatch):
    """The user's runs come before the demo."""
    monkeypatch.delenv("EMBRYO_DATA")
    assert runs.roots() == [runs.REPOSITORY / "data", runs.REPOSITORY / "data" / "demo"]


def test_run_is_opened_by_name_or_path(tiny_run: Run, monkeypatch: pytest.MonkeyPatch):
    """The name is searched in all roots; a path needs no root."""
    assert runs.open_run(tiny_run.path) == tiny_run
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_run.path.parents[1]))
    assert runs.open_run("tiny") == tiny_run
    assert runs.list_runs() == [tiny_run]


def test_written_run_is_read_back(own_run: Run):
    """run.json holds all fields of a run except its path."""
    changed = replace(own_run, objective="masked words", planned_steps=(0, 1, 2))
    runs.write_run(changed)
    assert runs.read_run(own_run.path) == changed


def test_run_is_named_after_its_folder(own_run: Run):
    """A run in a renamed folder has the new name, under which its results are found."""
    moved = own_run.path.rename(own_run.path.with_name("moved"))
    assert runs.read_run(moved).name == "moved"


def test_unknown_run_suggests_nearest_name(own_run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path):
    """The message also says how to list all runs."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    with pytest.raises(UnknownRun, match=r"Unknown run 'tinny'\. Did you mean 'tiny'.* python -m embryo_core runs"):
        runs.open_run("tinny")


def test_missing_field_of_run_json_is_named(own_run: Run):
    """An incomplete run.json makes a broken run."""
    card = json.loads((own_run.path / "run.json").read_text())
    del card["family"]
    runs.write_json(own_run.path / "run.json", card)
    with pytest.raises(BrokenRun, match="missing required field `family`"):
        runs.read_run(own_run.path)


def test_broken_run_is_not_listed(own_run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path):
    """A truncated run.json does not stop the listing."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    (own_run.path / "run.json").write_text('{"name": ')
    assert runs.list_runs() == []


def test_unfinished_run_is_not_listed(own_run: Run, monkeypatch: pytest.MonkeyPatch):
    """Temporary folders of runs that are being written or replaced are listed neither as runs nor as broken runs."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    shutil.copytree(own_run.path, own_run.path.with_name("tiny.old.tmp"))
    with runs.replacing(own_run.path.with_name("new")) as folder:
        shutil.copytree(own_run.path, folder)
        (folder / "checkpoints" / "step8" / "manifest.json").unlink()
        assert [run.name for run in runs.list_runs()] == ["tiny"] and runs.broken_runs() == []
    assert [run.name for run in runs.list_runs()] == ["new", "tiny"]


def test_data_folder_is_in_first_root(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """New runs are written there, too."""
    monkeypatch.setenv("EMBRYO_DATA", f"{tmp_path / 'mine'}:{tmp_path / 'theirs'}")
    assert runs.data_folder("corpora") == tmp_path / "mine" / "corpora"


# === Untrusted folders ===


@pytest.mark.parametrize(
    "content",
    [
        "5",
        "null",
        "[[[[]]]]",
        "{}",
        "[" * 100_000,
        b"\xff\xfe",
        '{"config": {"steps": NaN}}',
    ],
    ids=("number", "null", "lists", "empty", "deep", "no text", "NaN"),
)
def test_invalid_run_json_is_reported(own_run: Run, monkeypatch, tmp_path, content: str | bytes):
    """Other runs are listed; the broken run is reported with its folder and the reason."""
    (own_run.path.with_name("other")).mkdir()
    card = own_run.path.with_name("other") / "run.json"
    card.write_bytes(content.encode() if isinstance(content, str) else content)
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    assert [run.name for run in runs.list_runs()] == ["tiny"]
    ((path, reason),) = runs.broken_runs()
    assert path == card.parent and str(card) in reason and "remove its folder" in reason
    with pytest.raises(BrokenRun, match="is not valid"):
        runs.open_run("other")


@pytest.mark.parametrize("name", ["hidden_size", "learning_rate", "short_steps"])
@pytest.mark.parametrize("value", ["many", [1], None, -(2**64)])
def test_numeric_settings_must_be_numbers(own_run: Run, name: str, value: object):
    """The dashboard formats them, so text in their place makes a broken run instead of a traceback."""
    own_run.config[name] = value
    runs.write_run(own_run)
    with pytest.raises(BrokenRun, match=r"run\.json is not valid"):
        runs.read_run(own_run.path)


@pytest.mark.parametrize(
    "corpus",
    [5, {"train": None}, {"train": {"tokens": "many"}}, {"heldout": []}, {"sources": [{}]}, {"sources": {"name": "a"}}],
    ids=ascii,
)
def test_corpus_fields_must_have_their_types(own_run: Run, corpus: object):
    """The dashboard shows sizes as numbers and sources by name."""
    runs.write_run(replace(own_run, corpus=corpus))
    with pytest.raises(BrokenRun, match=r"run\.json is not valid"):
        runs.read_run(own_run.path)


def test_short_phase_requires_batch_size(own_run: Run):
    """short_steps is refused without the settings of the phase of short sequences."""
    own_run.config.update(short_steps=4)
    del own_run.config["short_batch_size"]
    runs.write_run(own_run)
    with pytest.raises(BrokenRun, match="short_steps without short_batch_size"):
        runs.read_run(own_run.path)


def test_unknown_settings_are_kept(own_run: Run):
    """They may come from another version of Embryo."""
    own_run.config["schedule"] = {"kind": "constant", "from": [1, 2]}
    runs.write_run(own_run)
    assert runs.read_run(own_run.path).config["schedule"] == {"kind": "constant", "from": [1, 2]}


def test_run_json_that_is_a_pipe_is_not_opened(own_run: Run, monkeypatch, tmp_path):
    """Opening a pipe would wait for a writer forever."""
    (own_run.path / "run.json").unlink()
    os.mkfifo(own_run.path / "run.json")
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    assert runs.list_runs() == []
    assert "run.json is not a regular file" in runs.broken_runs()[0][1]


def test_circular_link_is_a_broken_run(own_run: Run, monkeypatch, tmp_path):
    """A link to itself, as a run's folder or as its run.json, does not stop the listing."""
    (own_run.path / "run.json").unlink()
    (own_run.path / "run.json").symlink_to("run.json")
    own_run.path.with_name("circle").symlink_to("circle")
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    assert runs.list_runs() == []
    assert [path.name for path, _ in runs.broken_runs()] == ["circle", "tiny"]


def test_run_folder_may_be_a_symlink(own_run: Run, monkeypatch, tmp_path):
    """Runs on another disk are linked into runs/ by its owner, not by the sender of the run."""
    (tmp_path / "data" / "runs").mkdir(parents=True)
    (tmp_path / "data" / "runs" / "linked").symlink_to(own_run.path)
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))
    assert [run.path for run in runs.list_runs()] == [own_run.path]


@pytest.mark.parametrize("name", ["\x1b[2Jrun", "a\nb", b"\xff".decode(errors="surrogateescape")])
def test_unprintable_folder_name_is_escaped(own_run: Run, monkeypatch, tmp_path, name: str):
    """A name with terminal control codes or invalid text makes a broken run, reported with the name in escapes."""
    own_run.path.rename(own_run.path.with_name(name))
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    ((_, reason),) = runs.broken_runs()
    assert reason.isprintable() and "rename it" in reason and runs.list_runs() == []


def test_installed_package_uses_working_directory(tmp_path, monkeypatch):
    """Outside of a checkout, the default roots are in the current folder."""
    monkeypatch.delenv("EMBRYO_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(layout, "REPOSITORY", tmp_path / "site-packages")
    assert runs.roots() == [tmp_path / "data", tmp_path / "data" / "demo"]


def test_linked_run_is_listed_once(own_run: Run, monkeypatch: pytest.MonkeyPatch):
    """A link next to the run leads to the same run."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    (own_run.path.parent / "linked").symlink_to(own_run.path)
    assert [run.name for run in runs.list_runs()] == ["tiny"] and runs.open_run("linked") == own_run


# === Changes of training ===


ORIGIN = Origin("first", 100, 800, 20_000, "0" * 64, (Change(40, "sequences of 128 tokens"),))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, ()),
        ({"steps": 16, "short_steps": 8}, (Change(8, "sequences of 32 tokens"),)),
        ({"steps": 16, "constant_steps": 12}, (Change(12, "learning rate falls"),)),
        ({"steps": 16, "short_steps": 16, "constant_steps": 16}, ()),
    ],
    ids=str,
)
def test_phases_of_training_are_changes(tiny_run: Run, settings: dict, message: tuple):
    """The change is at the start of the second phase; a phase as long as the run has no second."""
    phases = {"short_batch_size": 8, "short_sequence_length": 16}
    assert runs.changes(replace(tiny_run, config=tiny_run.config | phases | settings)) == message


def test_continued_run_includes_changes_of_its_origin(tiny_run: Run):
    """The corpus changes at the first step of the continued run, from which its phases are counted."""
    sources = [{"name": "a.txt"}, {"name": "b.txt"}, {"name": "c.txt"}]
    config = tiny_run.config | {"constant_steps": 10, "steps": 16}
    run = replace(tiny_run, origin=ORIGIN, config=config, corpus=tiny_run.corpus | {"sources": sources})
    assert runs.changes(run) == (
        Change(40, "sequences of 128 tokens"),
        Change(100, "corpus: a.txt and 2 more"),
        Change(110, "learning rate falls"),
    )


def test_continued_run_with_same_corpus_has_no_corpus_change(tiny_run: Run):
    """The origin already records the change at the start of the second run."""
    begun = Change(100, "same text, new warm-up")
    run = replace(tiny_run, origin=replace(ORIGIN, changes=(*ORIGIN.changes, begun)))
    assert runs.changes(run) == (*ORIGIN.changes, begun)


def test_origin_is_stored_in_run_json(own_run: Run):
    """An origin with an invalid step makes a broken run."""
    run = replace(own_run, origin=ORIGIN)
    runs.write_run(run)
    assert runs.read_run(run.path) == run
    card = run.path / "run.json"
    card.write_text(card.read_text().replace('"step": 100', '"step": -1'))
    with pytest.raises(BrokenRun, match=r"run\.json is not valid"):
        runs.read_run(run.path)
