"""What every page is made of: its head (run picker, time bar), and pickers that live in the URL."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from app import permalink, results
from app.captions.markdown import literal
from app.captions.overlay import COUNTED
from app.captions.sentences import split
from app.charts.smoothing import WINDOWS
from app.components.copy_button import copy_button
from app.components.time_bar import time_bar
from app.view import View
from embryo_core import runs
from embryo_core.compare import UNITS, Unit
from embryo_core.curves import SCALES, Scale
from embryo_core.errors import EmbryoError, QueryError, TooCostly
from embryo_core.types import Run

UNIT_NAMES: dict[Unit, str] = {
    "step": "step",
    "sequences": "sequences",
    "tokens": "tokens",
    "words": "words",
    "flops": "training FLOPs",
    "share": "share of the run",
}
SMOOTHING = "smooth"  # its name in the URL
SCALE_OF = "scale_of_page"  # session: the scale that the reader chose, by page
PASSING = "step_passing"  # session: the chosen step is one that play passes through, and stays out of the URL


# === Head of a page ===


def open_page(title: str, usual: Callable[[Run], Scale] = lambda run: "log", alone: str = "") -> View:
    """Draw the head of a page and return what the user looks at; where there is no run, say what to do and stop.

    The axis of steps has the `usual` scale until the reader chooses one on this page. A page that draws no runs beside
    its own says in the sentence `alone` where to see them.
    """
    st.html(Path(__file__).parent / "components" / "page.css")
    permalink.restore()
    known = {run.name: run for run in runs.list_runs()}
    broken = {runs.shown(path.name): reason for path, reason in runs.broken_runs() if path.name not in known}
    if not known and not broken:
        st.title(title, anchor=False)
        folders = " and ".join(str(root / "runs") for root in runs.roots())
        stop(
            f"There is no run in {folders}; pretrain one, or name other folders in EMBRYO_DATA.",
            "python -m pretrain tiny --corpus PATH --run data/runs/NAME",
        )

    def named(name: str) -> str:
        return f"{name} (broken)" if name in broken else name

    left, right = st.columns([5, 3], vertical_alignment="bottom")
    left.title(title, anchor=False)
    with right, st.container(horizontal=True, vertical_alignment="bottom", key="head"):
        permalink.one_entry_per_page()
        copy_button("Copy link", key="copy_link")
        name = pick_one("run", "Run", [*known, *broken], format_func=named, label_visibility="collapsed")
        beside = st.popover("Overlay", icon=":material/stacked_line_chart:")
    if name in broken:
        stop(broken[name], "python -m embryo_core runs")
    run = known[name]
    checkpoints = tuple(runs.checkpoints(run))
    if not checkpoints:
        for _, reason in runs.broken(run):
            stop(reason, "python -m embryo_core runs")
        stop(f"Run '{run.name}' has no checkpoint yet; continue its pretraining.", "python -m pretrain --help")
    view = View(run, checkpoints, _wanted_step(checkpoints[-1].step), _scale(title, run, usual), _smoothing())
    view = replace(view, step=view.evaluated(view.steps))
    with beside:
        if alone:
            st.caption(alone)
        view = replace(view, beside=() if alone else _pick_beside(run, known), unit=_pick_unit())
    view = _counted(view)
    _show_time(view)
    _name_unknown(view, [*known, *broken])
    return view


def _pick_beside(run: Run, known: Mapping[str, Run]) -> tuple[Run, ...]:
    """The runs that the reader wants to see beside a run; an empty choice where there is no other."""
    others = [name for name in known if name != run.name]
    chosen = pick_many("beside", "Runs beside this one", others, ()) if others else []
    return tuple(known[name] for name in chosen)


def _pick_unit() -> Unit:
    """What the axis of steps counts."""
    return pick_one("axis", "Unit of the axis", UNITS, format_func=UNIT_NAMES.get, optional=True)


def _counted(view: View) -> View:
    """The view on an axis that its run can tell, which is steps where it does not tell another."""
    if view.tells(view.run):
        return view
    words = f"Run '{view.run.name}' does not tell {COUNTED[view.unit]}; the axis has its steps."
    st.info(literal(words), icon=":material/info:")
    return replace(view, unit="step")


def _scale(page: str, run: Run, usual: Callable[[Run], Scale]) -> Scale:
    """The scale that the reader chose on this page, by the time bar or a link, else the usual one."""
    chosen = st.session_state.setdefault(SCALE_OF, {})
    if (wanted := permalink.take("scale")) in SCALES:
        chosen[page] = wanted
    try:
        return chosen.get(page) or usual(run)
    except EmbryoError:
        return "log"  # the page itself tells which results cannot be read


def _name_unknown(view: View, names: Sequence[str]) -> None:
    """Say where a link names a run or step that is not here; its address stays until the reader chooses another."""
    run, step = permalink.get("run"), permalink.get("step")
    wanted = [name for name in (permalink.get("beside") or "").split(",") if name and name != view.run.name]
    if unknown := [name for name in wanted if name not in {run.name for run in view.beside}]:
        for name in unknown:
            st.info(literal(f"Run '{name}' is not here; showing '{view.run.name}' without it."), icon=":material/info:")
        permalink.show("beside", ",".join(wanted))
    if run and run not in names:
        st.info(literal(f"Run '{run}' is not here; showing '{view.run.name}'."), icon=":material/info:")
        permalink.show("run", run)
    if step and step != str(view.step):
        message = f"Run '{view.run.name}' has no checkpoint at step {step[:20]}; showing step {view.step:,}."
        st.info(literal(message), icon=":material/info:")
        permalink.show("step", step)


def at_weights(view: View) -> View:
    """The view at a step that can be asked, which the page tells where it is not the chosen one; else stop there."""
    if not view.loadable:
        stop(f"Run '{view.run.name}' has results and no weights any more; only its results can be shown.")
    found = replace(view, step=view.evaluated(view.loadable))
    if found.step != view.step:
        st.info(
            f"The weights of step {view.step:,} were removed; step {found.step:,} is asked in its place.",
            icon=":material/info:",
        )
    return found


def _show_time(view: View) -> None:
    with st.container(key="time"):
        time_bar(
            view.checkpoints,
            view.step,
            view.axis,
            results.phases(view.run),
            on_step=_choose_step,
            on_scale=lambda chosen: permalink.choose("scale", chosen),
        )
    if not st.session_state.get(PASSING) or "step" not in st.query_params:
        permalink.show("step", view.step)
    permalink.show("scale", view.scale)


def _choose_step(step: int, passing: bool) -> None:
    permalink.choose("step", step)
    st.session_state[PASSING] = passing


def _wanted_step(last: int) -> int:
    """The step of the URL, which this run may lack; the `last` of its steps where none was chosen."""
    wanted = permalink.get("step") or ""
    return int(wanted) if wanted.isdecimal() and len(wanted) <= 18 else last


def stop(message: str, command: str = "") -> None:
    """End the page calmly with one sentence and, where there is one, the command that mends it."""
    st.info(literal(message), icon=":material/info:")
    if command:
        st.code(command, language="bash", wrap_lines=True)
    permalink.publish()
    st.stop()


def show_caption(text: str, **appearance: Any) -> None:
    """A caption below a figure or a table: its first sentence, and the rest behind an info mark."""
    first, rest = split(text)
    st.caption(first, help=rest, **appearance)


def show_opening(sentence: str) -> None:
    """The sentence that opens a page (see captions/openings.py); nothing where its figure has nothing to say yet."""
    if sentence:
        st.markdown(f"**{sentence}**")


@contextmanager
def explaining() -> Iterator[None]:
    """An error that the user can mend becomes one sentence in this place, and the page goes on."""
    try:
        yield
    except QueryError as error:
        st.warning(literal(str(error)), icon=":material/warning:")
        if isinstance(error, TooCostly):
            st.code(error.command, language="bash", wrap_lines=True)
    except EmbryoError as error:
        st.error(literal(str(error)), icon=":material/error:")


# === Pickers ===


def pick_one(
    name: str,
    label: str,
    options: Sequence[Any],
    default: Any = None,
    format_func: Callable[[Any], str] = str,
    segmented: bool = False,
    optional: bool = False,
    **appearance: Any,
) -> Any:
    """One of the options: a select box, or segments where they are few; `name` is its name in the URL.

    An `optional` choice stays out of the URL while it is the first.
    """
    texts = {str(option): option for option in options}
    key = f"pick_{name}"
    st.session_state[key] = texts.get(permalink.get(name) or "", default if default in options else options[0])
    draw = st.segmented_control if segmented else st.selectbox
    own = {"required": True, "format_func": _marked(format_func)} if segmented else {"format_func": format_func}
    chosen = draw(label, options, key=key, on_change=_keep, args=(name,), **appearance, **own)
    permalink.show(name, None if optional and chosen == options[0] else chosen)
    return chosen


def pick_many(
    name: str,
    label: str,
    options: Sequence[str],
    default: Sequence[str],
    format_func: Callable[[str], str] = str,
    pills: bool = False,
) -> list[str]:
    """Some of the options, in their own order: a list, or pills where they are few.

    The URL holds them joined by commas, and nothing where they are the default.
    """
    wanted = permalink.get(name)
    key = f"pick_{name}"
    kept = set(default if wanted is None else wanted.split(","))
    st.session_state[key] = [option for option in options if option in kept]
    shared = {"key": key, "format_func": format_func, "on_change": _keep, "args": (name,)}
    chosen = (
        st.pills(label, options, selection_mode="multi", **shared | {"format_func": _marked(format_func)})
        if pills
        else st.multiselect(label, options, **shared)
    )
    permalink.show(name, None if set(chosen) == set(default) else ",".join(chosen))
    return [option for option in options if option in chosen]


def pick_switch(name: str, label: str, default: bool = False, optional: bool = False) -> bool:
    """On or off; an `optional` switch stays out of the URL while it has its default."""
    key = f"pick_{name}"
    st.session_state[key] = {"on": True, "off": False}.get(permalink.get(name) or "", default)
    chosen = st.toggle(label, key=key, on_change=_keep, args=(name,))
    permalink.show(name, None if optional and chosen == default else "on" if chosen else "off")
    return chosen


def pick_smoothing() -> None:
    """A slider for the smoothing of the page's curves, which its View has."""
    key = f"pick_{SMOOTHING}"
    st.session_state[key] = _smoothing()
    st.select_slider(
        "Smoothing",
        WINDOWS,
        key=key,
        format_func=lambda points: {1: "off", 3: "3 (paper)"}.get(points, str(points)),
        help="Adds the mean of so many neighbouring points to each curve. Markers stay as measured.",
        on_change=_keep,
        args=(SMOOTHING,),
        width=150,
    )
    permalink.show(SMOOTHING, None if _smoothing() == 1 else _smoothing())


def _smoothing() -> int:
    """The smoothing of the URL; none where it names no setting of the slider."""
    return {str(points): points for points in WINDOWS}.get(permalink.get(SMOOTHING) or "", 1)


def pick_layer(layers: int, default: int = 1) -> int:
    """A layer, counted from 1, the lowest."""
    return pick_one("layer", "Layer", range(1, layers + 1), default)


def pick_head(heads: int, default: int = 1) -> int:
    """An attention head, counted from 1."""
    return pick_one("head", "Head", range(1, heads + 1), default)


def _marked(format_func: Callable[[Any], str]) -> Callable[[Any], str]:
    """The same texts for a widget that reads Markdown in its options, as segments and pills do."""
    return lambda option: literal(format_func(option))


def _keep(name: str) -> None:
    chosen = st.session_state[f"pick_{name}"]
    if isinstance(chosen, bool):
        chosen = "on" if chosen else "off"
    permalink.choose(name, ",".join(chosen) if isinstance(chosen, list) else chosen)
