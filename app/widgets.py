"""The head of every page: its title, run picker, compared runs and time bar."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import notices, permalink, pickers, results, sharing
from app.components.copy_button import copy_button
from app.components.time_bar import time_bar
from app.view import View, last_up_to
from embryo_core import comparison, runs
from embryo_core.comparison import Unit
from embryo_core.curves.phases import Phase
from embryo_core.curves.step_scales import SCALES, Scale
from embryo_core.curves.turns import Stretch
from embryo_core.errors import EmbryoError, printable
from embryo_core.figures.axis import UNIT_TITLES
from embryo_core.types import Checkpoint, Run
from embryo_core.words import sentence_case

UNIT_NAMES: dict[Unit, str] = {
    "step": "step",
    **{unit: name.removesuffix(" seen") for unit, name in UNIT_TITLES.items()},
}
REQUIRED_RECORDS: dict[Unit, str] = {  # what a run must record for an axis, as the end of a message
    "sequences": "how many sequences it had seen",
    "tokens": "how many tokens it had seen",
    "words": "how many words it had seen",
    "flops": "the FLOPs of its training",
    "share": "its planned length",
}
PASSING_KEY = "step_passing"  # session: whether playing set the step; the URL then keeps its earlier step


# === Head of a page ===


def begin_page(
    title: str,
    stops: Callable[[Run], Collection[int]] = lambda run: (),
    alone: str = "",
    default_runs: Callable[[Run, Collection[Run]], Sequence[str]] = lambda run, others: (),
    phases: Callable[[Run], Sequence[Phase | Stretch]] = results.phases,
) -> View:
    """Draw the head of a page and return its view; without a run, show how to make one and end the page.

    `stops` returns the steps for which the page has data: playing shows only these, or all steps if there are none.
    `alone`, for a page that draws no compared runs, is a sentence that says where to compare runs. `default_runs`
    returns the names of the runs that are compared until the reader chooses. `phases` returns the stretches of training
    named below the time bar.
    """
    st.html(Path(__file__).parent / "components" / "page.css")
    permalink.restore()
    sharing.hide_other_figures()
    by_name, labels, broken = _list_runs()
    if not by_name and not broken:
        _stop_without_runs(title)
    name, overlay = _show_head(title, labels, broken)
    if name in broken:
        notices.stop(broken[name], "python -m embryo_core runs")
    run = by_name[name]
    checkpoints = _checkpoints(run)
    step = last_up_to(_wanted_step(checkpoints[-1].step), [checkpoint.step for checkpoint in checkpoints])
    scale: Scale = "linear" if permalink.get("scale") == "linear" else "log"  # linear would squeeze the early steps
    with overlay:
        if alone:
            st.caption(alone)
        compared = () if alone else _pick_compared_runs(run, by_name, labels, default_runs(run, by_name.values()))
        unit = pickers.pick_one("axis", "Unit of the axis", UNIT_NAMES, optional=True, report=False)
        view = View(run, checkpoints, step, scale, pickers.chosen_smoothing(), compared, unit)
        sharing.show_command(title, view)
    view = _with_supported_axis(view)
    _show_time(view, stops, phases)
    _name_unknown(view, by_name, broken)
    return view


def _list_runs() -> tuple[dict[str, Run], dict[str, str], dict[str, str]]:
    """Return the runs and their labels, in the order of the pickers, and why other runs cannot be read, all by name."""
    by_name = {run.name: run for run in runs.list_runs()}
    labels = group_runs(by_name.values())
    broken = {printable(path.name): reason for path, reason in runs.broken_runs() if path.name not in by_name}
    return {name: by_name[name] for name in labels}, labels, broken


def _stop_without_runs(title: str) -> None:
    """End a page that has no run to show, with the command that makes one."""
    st.title(title, anchor=False)
    folders = " and ".join(str(root / "runs") for root in runs.roots())
    notices.stop(
        f"There is no run in {folders}; pretrain one, or name other folders in EMBRYO_DATA.",
        "python -m pretrain tiny --corpus PATH --run data/runs/NAME",
    )


def _show_head(title: str, labels: Mapping[str, str], broken: Mapping[str, str]) -> tuple[str, DeltaGenerator]:
    """Draw the title, the run picker and the Overlay popover; return the name of the chosen run, and the popover."""
    left, right = st.columns(2, vertical_alignment="bottom")
    left.title(title, anchor=False)
    with right, st.container(horizontal=True, vertical_alignment="bottom", key="head"):
        permalink.one_entry_per_page()
        copy_button("Copy link", key="copy_link")
        names = {**labels, **{name: f"{name} (broken)" for name in broken}}
        name = pickers.pick_one("run", "Run", names, report=False, label_visibility="collapsed")
        return name, st.popover("Overlay", icon=":material/stacked_line_chart:")


def _checkpoints(run: Run) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of a run; if it has none, show the reason and end the page."""
    checkpoints = tuple(runs.checkpoints(run))
    if not checkpoints:
        for _, reason in runs.broken_checkpoints(run):
            notices.stop(reason, "python -m embryo_core runs")
        notices.stop(f"Run '{run.name}' has no checkpoint yet; continue its pretraining.", "python -m pretrain --help")
    return checkpoints


def group_runs(listed: Iterable[Run]) -> dict[str, str]:
    """Return {run name: label} in the order of the pickers: by data root, then as in `comparison.group_by_size`.

    A label marks a design choice and one of several seeds. A run outside all roots, such as a linked folder, is listed
    with the first root.
    """
    roots = runs.roots()
    by_root: dict[Path, list[Run]] = {root: [] for root in roots}
    for run in listed:
        by_root[next((root for root in roots if run.path.is_relative_to(root)), roots[0])].append(run)
    labels: dict[str, str] = {}
    for of_root in by_root.values():
        for designs in comparison.group_by_size(of_root):
            for seeds in designs:
                notes = ["design choice"] * (len(designs) > 1) + [f"one of {len(seeds)} seeds"] * (len(seeds) > 1)
                labels |= {run.name: " · ".join([run.name, *notes]) for run in seeds}
    return labels


def _pick_compared_runs(
    run: Run, by_name: Mapping[str, Run], labels: Mapping[str, str], default: Sequence[str]
) -> tuple[Run, ...]:
    """Pick and return the runs to compare with a run; none if there is no other run."""
    others = [name for name in by_name if name != run.name]
    if not others:
        st.caption("There is no other run to compare with this one.")
        return ()
    chosen = pickers.pick_many("beside", "Compared runs", others, default, labels.__getitem__, report=False)
    return tuple(by_name[name] for name in chosen)


def _with_supported_axis(view: View) -> View:
    """Return the view, on an axis of steps if its run lacks the chosen unit; name the compared runs that lack it."""
    if not view.supports_axis(view.run):
        notices.note(f"Run '{view.run.name}' does not record {REQUIRED_RECORDS[view.unit]}; the axis counts steps.")
        view = replace(view, unit="step")
    recorded = REQUIRED_RECORDS.get(view.unit, f"its steps in {view.run.step_unit}")
    for run in view.compared_runs:
        if not view.supports_axis(run):
            notices.note(f"Run '{run.name}' does not record {recorded}; figures over the steps leave it out.")
    return view


def _name_unknown(view: View, names: Collection[str], broken: Collection[str]) -> None:
    """Report an unknown run, step, axis or scale in the link; it stays in the URL until the reader chooses another."""
    run, step = permalink.get("run"), permalink.get("step")
    wanted = [name for name in permalink.split(permalink.get("beside") or "") if name and name != view.run.name]
    if unknown := [name for name in wanted if name not in names]:
        for name in unknown:
            notices.note(f"Run '{name}' is not here; showing '{view.run.name}' without it.")
        permalink.put_in_url("beside", permalink.join(wanted))
    if run and run not in names and run not in broken:
        notices.note(f"Run '{run}' is not here; showing '{view.run.name}'.")
        permalink.put_in_url("run", run)
    if step and step != str(view.step):
        named = int(step) if re.fullmatch("[0-9]{1,18}", step) else step[:20]
        missing, shown = view.name_step(named), view.name_step(view.step)
        notices.note(f"Run '{view.run.name}' has no checkpoint at {missing}; showing {shown}.")
        permalink.put_in_url("step", step)
    pickers.check_link("axis", UNIT_NAMES, UNIT_NAMES[view.unit])
    pickers.check_link("scale", SCALES, view.scale)


def at_weights(view: View, these: str = "these answers are from") -> View:
    """Return the view at the last step with weights up to the chosen one, else at the first with weights.

    If that is not the chosen step, a caption says so: `these` is its text before the name of the other step. End the
    page if no checkpoint has weights.
    """
    if not view.loadable:
        notices.stop(f"No checkpoint of '{view.run.name}' kept its weights; the other pages have its results.")
    loadable = replace(view, step=view.evaluated_step(view.loadable))
    # drawn at every step, empty if not needed: otherwise the page would jump while the time bar plays
    if len(view.loadable) < len(view.checkpoints):
        words = f"{sentence_case(view.name_step(view.step))} kept no weights; {these} {view.name_step(loadable.step)}."
        with st.container(key="at_weights"):
            st.caption("" if loadable.step == view.step else words)
    return loadable


def _show_time(
    view: View, stops: Callable[[Run], Collection[int]], phases: Callable[[Run], Sequence[Phase | Stretch]]
) -> None:
    """Draw the time bar, and put its step and scale into the URL."""
    try:
        played, phase_list = stops(view.run), phases(view.run)
    except EmbryoError:
        played, phase_list = (), ()  # the page itself reports unreadable results
    with st.container(key="time"):
        time_bar(
            view.checkpoints,
            view.step,
            view.axis,
            phase_list,
            on_step=_choose_step,
            on_scale=lambda chosen: permalink.choose("scale", chosen),
            stops=played,
        )
    if not st.session_state.get(PASSING_KEY) or "step" not in st.query_params:
        permalink.put_in_url("step", view.step)
    permalink.put_in_url("scale", view.scale)


def _choose_step(step: int, passing: bool) -> None:
    permalink.choose("step", step)
    st.session_state[PASSING_KEY] = passing


def _wanted_step(last: int) -> int:
    """Return the step in the URL, which the run may lack; the run's `last` step if the URL has none."""
    received = permalink.get("step") or ""
    return int(received) if received.isdecimal() and len(received) <= 18 else last
