"""Tests of the run picker, which names the group of each run, and of the length limits of typed texts."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.pickers import MAX_CHARACTERS
from app.widgets import group_runs
from embryo_core.types import Run

WHERE = {  # page and further parameters by the name of the text
    "text": ("query", {}),
    "text2": ("query", {"compare": "text", "text": "a [MASK] ."}),
    "sentence": ("attention", {"section": "sentence"}),
    "word": ("query", {"text": "a [MASK] ."}),
    "search": ("tokens", {}),
    "facts": ("knowledge", {}),
    "word_search": ("words", {}),
}


def test_runs_are_grouped_root_by_root(tiny_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs of the first root come first, and with them a run that is linked from elsewhere."""
    roots = tmp_path / "own", tmp_path / "demo"
    monkeypatch.setenv("EMBRYO_DATA", ":".join(map(str, roots)))

    def run(root: Path, name: str, **config: object) -> Run:
        return replace(tiny_run, name=name, path=root / "runs" / name, config=tiny_run.config | config)

    own = [run(roots[0], f"own{seed}", seed=seed) for seed in (1, 2)]
    linked = run(tmp_path / "elsewhere", "linked", num_hidden_layers=9)
    demo = [run(roots[1], "base"), run(roots[1], "dropout", hidden_dropout_prob=0.5)]
    labels = group_runs([*own, *demo, linked])
    assert [*labels] == ["linked", "own1", "own2", "base", "dropout"]
    assert labels["linked"] == "linked" and "2 seeds" in labels["own1"] and "seeds" not in labels["base"]
    assert all(label.startswith(name) for name, label in labels.items())


# === Texts ===


def boxes(app) -> list:
    """Return all text boxes of a page."""
    return [*app.text_area, *app.text_input]


def test_every_limited_text_is_tested_here() -> None:
    """The tests below cover each text that has a limit."""
    assert WHERE.keys() == MAX_CHARACTERS.keys()


@pytest.mark.parametrize("name", WHERE)
def test_overlong_text_in_link_is_rejected_with_one_warning(name: str, dashboard_with_results) -> None:
    """The warning gives the text's length and the limit; the text is neither in a box nor in the URL."""
    page, more = WHERE[name]
    app = dashboard_with_results.open(page, **more, **{name: "x" * 400_000})
    assert not app.exception and not app.error
    (warning,) = app.warning
    assert "400,000 characters; the maximum is" in warning.value.replace("\\", "")
    assert f"{MAX_CHARACTERS[name]:,}" in warning.value.replace("\\", "")
    assert max(len(box.value) for box in boxes(app)) < 100
    assert name not in app.query_params or len(app.query_params[name]) < 100


@pytest.mark.parametrize("name", WHERE)
@pytest.mark.usefixtures("all_opened")
def test_overlong_typed_text_is_cut(name: str, dashboard_with_results) -> None:
    """The server applies the limit of the box too, since a forged message can bypass the browser."""
    page, more = WHERE[name]
    app = dashboard_with_results.open(page, **more)
    box = next(box for box in boxes(app) if box.proto.max_chars == MAX_CHARACTERS[name])
    box.set_value("x" * 200_000).run()
    assert not app.exception
    assert max(len(box.value) for box in boxes(app)) == MAX_CHARACTERS[name]
