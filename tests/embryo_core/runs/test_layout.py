"""Runs are found by name or path; those that cannot be read are told apart and take no other down."""

import json
import os
from dataclasses import replace

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun, UnknownRun
from embryo_core.types import Run


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
    with pytest.raises(UnknownRun, match="Unknown run 'tinny'. Did you mean 'tiny'.* python -m embryo_core runs"):
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
