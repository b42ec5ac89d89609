"""Runs are found by name or path; those that cannot be read are listed apart, and the others are read."""

import json
import os
import shutil
from dataclasses import replace

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun, UnknownRun
from embryo_core.runs import layout
from embryo_core.types import Change, Origin, Run


def test_roots_are_those_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """EMBRYO_DATA names folders as PATH does, the first one first."""
    monkeypatch.setenv("EMBRYO_DATA", os.pathsep.join((str(tmp_path / "a"), str(tmp_path / "b"))))
    assert runs.roots() == [tmp_path / "a", tmp_path / "b"]


def test_roots_are_data_and_its_demo_by_default(monkeypatch: pytest.MonkeyPatch):
    """Without EMBRYO_DATA: the user's own runs, then the demo."""
    monkeypatch.delenv("EMBRYO_DATA")
    assert runs.roots() == [runs.REPOSITORY / "data", runs.REPOSITORY / "data" / "demo"]


def test_a_run_is_opened_by_name_and_by_path(tiny_run: Run, monkeypatch: pytest.MonkeyPatch):
    """The name is looked up under the roots; a path needs no root."""
    assert runs.open_run(tiny_run.path) == tiny_run
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_run.path.parents[1]))
    assert runs.open_run("tiny") == tiny_run
    assert runs.list_runs() == [tiny_run]


def test_what_is_written_is_read(own_run: Run):
    """run.json holds every field of a run but its path."""
    changed = replace(own_run, objective="masked words", planned_steps=(0, 1, 2))
    runs.write_run(changed)
    assert runs.read_run(own_run.path) == changed


def test_the_folder_names_the_run(own_run: Run):
    """A run whose folder was renamed goes by its new name, which is also that of its results."""
    moved = own_run.path.rename(own_run.path.with_name("moved"))
    assert runs.read_run(moved).name == "moved"


def test_an_unknown_run_is_answered_with_the_known_ones(own_run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path):
    """The message suggests the nearest name and says how to list all."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    with pytest.raises(UnknownRun, match=r"Unknown run 'tinny'\. Did you mean 'tiny'.* python -m embryo_core runs"):
        runs.open_run("tinny")


def test_a_run_card_without_a_field_names_the_field(own_run: Run):
    """An incomplete run.json is a broken run and says what it lacks."""
    card = json.loads((own_run.path / "run.json").read_text())
    del card["family"]
    runs.write_json(own_run.path / "run.json", card)
    with pytest.raises(BrokenRun, match="missing required field `family`"):
        runs.read_run(own_run.path)


def test_a_broken_run_is_left_out_of_the_list(own_run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path):
    """A folder with a truncated run.json neither stops the listing nor appears in it."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    (own_run.path / "run.json").write_text('{"name": ')
    assert runs.list_runs() == []


def test_a_run_that_is_being_written_is_no_run_yet(own_run: Run, monkeypatch: pytest.MonkeyPatch):
    """Neither it nor what is about to be removed is listed, as a run or as a broken one."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    shutil.copytree(own_run.path, own_run.path.with_name("tiny.old.tmp"))
    with runs.replacing(own_run.path.with_name("new")) as folder:
        shutil.copytree(own_run.path, folder)
        (folder / "checkpoints" / "step8" / "manifest.json").unlink()
        assert [run.name for run in runs.list_runs()] == ["tiny"] and runs.broken_runs() == []
    assert [run.name for run in runs.list_runs()] == ["new", "tiny"]


def test_data_are_kept_in_the_first_root(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """Where runs go too."""
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
def test_a_broken_run_card_is_reported_and_other_runs_stay(own_run: Run, monkeypatch, tmp_path, content: str | bytes):
    """Whatever run.json holds, other runs are listed, and this one with its folder and its reason."""
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
def test_settings_that_are_computed_with_are_numbers(own_run: Run, name: str, value: object):
    """The run's card on the dashboard formats them: text in their place makes a broken run, not a traceback."""
    own_run.config[name] = value
    runs.write_run(own_run)
    with pytest.raises(BrokenRun, match=r"run\.json is not valid"):
        runs.read_run(own_run.path)


@pytest.mark.parametrize(
    "corpus",
    [5, {"train": None}, {"train": {"tokens": "many"}}, {"heldout": []}, {"sources": [{}]}, {"sources": {"name": "a"}}],
    ids=ascii,
)
def test_what_is_shown_of_the_corpus_has_its_types(own_run: Run, corpus: object):
    """Sizes are numbers, and sources have names."""
    runs.write_run(replace(own_run, corpus=corpus))
    with pytest.raises(BrokenRun, match=r"run\.json is not valid"):
        runs.read_run(own_run.path)


def test_a_first_phase_has_its_batches(own_run: Run):
    """Updates on short sequences go with their length and number."""
    own_run.config.update(short_steps=4)
    del own_run.config["short_batch_size"]
    runs.write_run(own_run)
    with pytest.raises(BrokenRun, match="short_steps without short_batch_size"):
        runs.read_run(own_run.path)


def test_settings_of_other_versions_are_kept(own_run: Run):
    """Fields that this version does not know are kept."""
    own_run.config["schedule"] = {"kind": "constant", "from": [1, 2]}
    runs.write_run(own_run)
    assert runs.read_run(own_run.path).config["schedule"] == {"kind": "constant", "from": [1, 2]}


def test_a_run_card_that_is_a_pipe_is_not_opened(own_run: Run, monkeypatch, tmp_path):
    """Opening a pipe would wait for a writer: it is refused, and nothing hangs."""
    (own_run.path / "run.json").unlink()
    os.mkfifo(own_run.path / "run.json")
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    assert runs.list_runs() == []
    assert "run.json is not a regular file" in runs.broken_runs()[0][1]


def test_a_link_in_a_circle_is_a_broken_run(own_run: Run, monkeypatch, tmp_path):
    """A link to itself, as a run's folder or as its run.json, ends nothing."""
    (own_run.path / "run.json").unlink()
    (own_run.path / "run.json").symlink_to("run.json")
    own_run.path.with_name("circle").symlink_to("circle")
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    assert runs.list_runs() == []
    assert [path.name for path, _ in runs.broken_runs()] == ["circle", "tiny"]


def test_the_folder_of_a_run_may_be_a_link(own_run: Run, monkeypatch, tmp_path):
    """A run on another disk is linked into runs/; the owner of runs/ made that link, not the run's sender."""
    (tmp_path / "data" / "runs").mkdir(parents=True)
    (tmp_path / "data" / "runs" / "linked").symlink_to(own_run.path)
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))
    assert [run.path for run in runs.list_runs()] == [own_run.path]


@pytest.mark.parametrize("name", ["\x1b[2Jrun", "a\nb", b"\xff".decode(errors="surrogateescape")])
def test_a_folder_whose_name_cannot_be_shown_is_broken(own_run: Run, monkeypatch, tmp_path, name: str):
    """A name that would steer the terminal, or that is no text, is reported in escapes."""
    own_run.path.rename(own_run.path.with_name(name))
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    ((_, reason),) = runs.broken_runs()
    assert reason.isprintable() and "rename it" in reason and runs.list_runs() == []


def test_an_installed_package_looks_in_the_working_directory(tmp_path, monkeypatch):
    """Outside of a checkout the usual roots are in the folder where one is."""
    monkeypatch.delenv("EMBRYO_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(layout, "REPOSITORY", tmp_path / "site-packages")
    assert runs.roots() == [tmp_path / "data", tmp_path / "data" / "demo"]


def test_a_run_is_listed_once(own_run: Run, monkeypatch: pytest.MonkeyPatch):
    """Also if a link next to it leads to it."""
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
def test_phases_of_length_and_rate_are_changes(tiny_run: Run, settings: dict, message: tuple):
    """Where the second phase begins; a phase as long as the run has no second."""
    phases = {"short_batch_size": 8, "short_sequence_length": 16}
    assert runs.changes(replace(tiny_run, config=tiny_run.config | phases | settings)) == message


def test_a_continued_run_has_the_changes_of_the_first_and_its_own(tiny_run: Run):
    """Its text is another from its start on, and its phases count from there."""
    sources = [{"name": "a.txt"}, {"name": "b.txt"}, {"name": "c.txt"}]
    config = tiny_run.config | {"constant_steps": 10, "steps": 16}
    run = replace(tiny_run, origin=ORIGIN, config=config, corpus=tiny_run.corpus | {"sources": sources})
    assert runs.changes(run) == (
        Change(40, "sequences of 128 tokens"),
        Change(100, "corpus: a.txt and 2 more"),
        Change(110, "learning rate falls"),
    )


def test_a_run_that_goes_on_with_the_same_text_has_no_other(tiny_run: Run):
    """Its origin has the change; no second one is added for the text."""
    begun = Change(100, "same text, new warm-up")
    run = replace(tiny_run, origin=replace(ORIGIN, changes=(*ORIGIN.changes, begun)))
    assert runs.changes(run) == (*ORIGIN.changes, begun)


def test_the_origin_is_kept_in_run_json(own_run: Run):
    """Written and read again, it is the same; one that is none breaks the run."""
    run = replace(own_run, origin=ORIGIN)
    runs.write_run(run)
    assert runs.read_run(run.path) == run
    card = run.path / "run.json"
    card.write_text(card.read_text().replace('"step": 100', '"step": -1'))
    with pytest.raises(BrokenRun, match=r"run\.json is not valid"):
        runs.read_run(run.path)
