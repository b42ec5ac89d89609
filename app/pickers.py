"""Pickers whose choice is kept in the URL: one or several options, switches, smoothing, layers, heads and texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import permalink
from embryo_core import compare, query, runs
from embryo_core.curves import HISTORIES
from embryo_core.figures.markdown import literal
from embryo_core.figures.smoothing import WINDOWS
from embryo_core.types import Run

SMOOTHING = "smooth"  # name in the URL
OPEN = "open"  # name in the URL of the list of unfolded sections
NUMBER = 110  # pixels: width of a box for a layer or a head
SWITCHED = {"on": True, "off": False}  # values of a switch in the URL
MAX_LINK = 2_000  # characters: a longer text is left out of the URL
MAX_CHARACTERS = {  # limits of the texts that readers type, by their names in the URL
    "text": query.MAX_CHARACTERS,
    "text2": MAX_LINK,
    "sentence": MAX_LINK,
    "word": 100,
    "search": 100,
    "facts": 100,
    "word_search": 100,
}
ANY = "any"  # in a picker of histories: every history
SCALINGS = {"raw": "As measured", "rescaled": "Relative to last step"}  # value in the URL -> label


def pick_one(
    name: str,
    label: str,
    options: Sequence[Any] | Mapping[Any, str],
    default: Any = None,
    format_func: Callable[[Any], str] = str,
    segmented: bool = False,
    optional: bool = False,
    report: bool = True,
    hidden: Mapping[str, str] = MappingProxyType({}),
    then: Callable[[Any], None] = lambda chosen: None,
    **appearance: Any,
) -> Any:
    """Pick one of the options with a select box, or with segments if they are few; `name` is its name in the URL.

    Options may be a mapping to their labels; else `format_func` labels them. An `optional` choice is left out of the
    URL while it is the first option. If a link names none of the options, `report` shows a message, and the URL is kept
    until the reader chooses one. `hidden` maps options that another picker excludes to the label of that picker. `then`
    is called with the reader's choice before the page is drawn again.
    """
    if isinstance(options, Mapping):
        options, format_func = [*options], options.__getitem__
    texts = {str(option): option for option in options}
    key = f"pick_{name}"
    st.session_state[key] = texts.get(permalink.get(name) or "", default if default in options else options[0])
    draw: Any = st.segmented_control if segmented else st.selectbox
    extra = {"required": True, "format_func": _marked(format_func)} if segmented else {"format_func": format_func}

    def picked() -> None:
        _keep(name)
        then(st.session_state[key])

    chosen = draw(label, options, key=key, on_change=picked, **appearance, **extra)
    permalink.show(name, None if optional and chosen == options[0] else chosen)
    if report and (wanted := permalink.get(name)) is not None and wanted not in texts:
        why = f"hidden by the choice of {hidden[wanted]}" if wanted in hidden else "not here"
        report_unknown(name, [wanted], format_func(chosen), why)
    return chosen


def group_runs(listed: Iterable[Run]) -> dict[str, str]:
    """Return {run name: label} in the order of the pickers: by data root, then as in `compare.group_by_size`.

    A label marks a design choice and one of several seeds. A run outside all roots, such as a linked folder, is listed
    with the first root.
    """
    roots = runs.roots()
    by_root: dict[Path, list[Run]] = {root: [] for root in roots}
    for run in listed:
        by_root[next((root for root in roots if run.path.is_relative_to(root)), roots[0])].append(run)
    labels: dict[str, str] = {}
    for of_root in by_root.values():
        for designs in compare.group_by_size(of_root):
            for seeds in designs:
                notes = ["design choice"] * (len(designs) > 1) + [f"one of {len(seeds)} seeds"] * (len(seeds) > 1)
                labels |= {run.name: " · ".join([run.name, *notes]) for run in seeds}
    return labels


def pick_many(
    name: str,
    label: str,
    options: Sequence[str],
    default: Sequence[str],
    format_func: Callable[[str], str] = str,
    pills: bool = False,
    report: bool = True,
    bulk: bool = False,
) -> list[str]:
    """Pick some of the options with a list, or with pills if they are few; return them in the order of the options.

    The URL has the choice as one text (`permalink.join`), unless it is the default; `report` as in `pick_one`. With
    `bulk`, one click chooses all options, none, or a single one.
    """
    if bulk:
        _pick_bulk(name, options, format_func)
    wanted = permalink.get(name)
    key = f"pick_{name}"
    kept = set(default if wanted is None else permalink.split(wanted))
    if report and permalink.came_with_link(name) and not kept & {*options}:
        kept = set(default or options)
        if not wanted:
            st.info(
                literal(f"The link names no {name.replace('_', ' ')}; showing the default."), icon=":material/info:"
            )
    st.session_state[key] = [option for option in options if option in kept]
    shared: dict[str, Any] = {"key": key, "format_func": format_func, "on_change": _keep, "args": (name,)}
    chosen = (
        st.pills(label, options, selection_mode="multi", **shared | {"format_func": _marked(format_func)})
        if pills
        else st.multiselect(label, options, **shared)
    )
    permalink.show(name, None if set(chosen) == set(default) else permalink.join(chosen))
    if report and wanted and (unknown := [one for one in permalink.split(wanted) if one and one not in options]):
        report_unknown(name, unknown)
    return [option for option in options if option in chosen]


def pick_switch(name: str, label: str, default: bool = False, optional: bool = False) -> bool:
    """Pick on or off; an `optional` switch is left out of the URL while it has its default. See `pick_one`."""
    key, wanted = f"pick_{name}", permalink.get(name)
    st.session_state[key] = SWITCHED.get(wanted or "", default)
    chosen = st.toggle(label, key=key, on_change=_keep, args=(name,))
    said = "on" if chosen else "off"
    permalink.show(name, None if optional and chosen == default else said)
    if wanted is not None and wanted not in SWITCHED:
        report_unknown(name, [wanted], said)
    return chosen


def _pick_bulk(name: str, options: Sequence[str], format_func: Callable[[str], str]) -> None:
    """Draw the buttons "All" and "None", and a box that chooses a single option."""
    key = f"only_{name}"

    def only() -> None:
        if (chosen := st.session_state[key]) in options:
            permalink.choose(name, permalink.join([chosen]))
        st.session_state[key] = None

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for label, taken in (("All", options), ("None", ())):
            st.button(label, key=f"{label}_{name}", on_click=permalink.choose, args=(name, permalink.join(taken)))
        hidden: dict[str, Any] = {"label_visibility": "collapsed", "placeholder": "only this", "width": 180}
        st.selectbox("Only this", options, None, key=key, format_func=format_func, on_change=only, **hidden)


def fold(name: str, title: str, draw: Callable[[], object], choice: str = "") -> None:
    """Draw a section that is folded, and not computed, until the reader opens it; the URL names the open sections.

    `choice` is the name in the URL of a choice made in the section: a link with it opens the section, and folding the
    section clears it. A frame of a figure that is named after the section opens it too. Figures in the section lose
    their zoom if the title changes.
    """
    opened = set(permalink.split(permalink.get(OPEN) or "")) - {""}
    linked = (choice and permalink.get(choice)) or f"-{name}" in (permalink.get("figure") or "")
    if linked and name not in opened:
        opened.add(name)
        permalink.choose(OPEN, permalink.join(sorted(opened)))
    key = f"fold_{name}"
    st.session_state[key] = name in opened

    def toggled() -> None:
        permalink.choose(OPEN, permalink.join(sorted(opened ^ {name})))
        if choice and name in opened:
            permalink.choose(choice, "")

    section = st.expander(title, key=key, on_change=toggled)
    if section.open:
        with section:
            draw()
    elif choice:
        permalink.show(choice, None)
    permalink.show(OPEN, permalink.join(sorted(opened)) or None)


def options() -> DeltaGenerator:
    """Return a popover for rarely changed options of a page's figures."""
    return st.popover("Options", icon=":material/tune:")


def pick_smoothing() -> None:
    """Draw a slider for the smoothing of the page's curves; report a link whose value is not on it."""
    key = f"pick_{SMOOTHING}"
    st.session_state[key] = chosen_smoothing()
    st.select_slider(
        "Smoothing",
        WINDOWS,
        key=key,
        format_func=_smoothing_name,
        help="Adds the mean of this number of neighbouring points to each curve. Markers stay as measured.",
        on_change=_keep,
        args=(SMOOTHING,),
        width=150,
    )
    permalink.show(SMOOTHING, None if chosen_smoothing() == 1 else chosen_smoothing())
    if (wanted := permalink.get(SMOOTHING)) is not None and wanted not in map(str, WINDOWS):
        report_unknown(SMOOTHING, [wanted], _smoothing_name(chosen_smoothing()))


def chosen_smoothing() -> int:
    """Return the smoothing in the URL, or 1 (none) if the URL has no value of the slider."""
    return {str(points): points for points in WINDOWS}.get(permalink.get(SMOOTHING) or "", 1)


def _smoothing_name(points: int) -> str:
    return {1: "off", 3: "3 (paper)"}.get(points, str(points))


def pick_number(name: str, count: int, default: int) -> int:
    """Pick a layer or a head, counted from 1; `name` is "layer" or "head"."""
    return pick_one(name, name.capitalize(), range(1, count + 1), default, width=NUMBER)


def choose_head(layer: int, head: int) -> None:
    """Choose a layer and a head; for callbacks."""
    permalink.choose_all(layer=layer, head=head)


def pick_rescaled(label: str) -> bool:
    """Pick whether curves are divided by their last values, and return it."""
    return pick_one("unit", label, SCALINGS, segmented=True) == "rescaled"


def pick_history(name: str) -> str:
    """Pick and return one of the histories of facts, pairs or examples, or ANY."""
    return pick_one(name, "History", (ANY, *HISTORIES))


def pick_text(name: str, label: str, default: str = "", **appearance: Any) -> str:
    """Draw a line of text and return it; `name` is its name in the URL."""
    key = f"pick_{name}"
    st.session_state[key] = chosen_text(name, label, default)
    chosen = st.text_input(
        label,
        key=key,
        max_chars=MAX_CHARACTERS[name],
        on_change=lambda: permalink.choose(name, st.session_state[key]),
        **appearance,
    )
    permalink.show(name, chosen if chosen != default else None)
    return chosen


def chosen_text(name: str, label: str, default: str = "") -> str:
    """Return the text in the URL, or the default; a text above its limit is replaced by the default, with a warning."""
    chosen, limit = permalink.get(name), MAX_CHARACTERS[name]
    if chosen is None:
        return default
    if len(chosen) > limit:
        sentence = f"“{label}” has {len(chosen):,} characters; the maximum is {limit:,}. Shorten it."
        st.warning(literal(sentence), icon=":material/warning:")
        permalink.choose(name, default)
        return default
    return chosen


def report_unknown(name: str, unknown: Sequence[str], shown: str = "", why: str = "not here") -> None:
    """Report that the page's link names something that does not exist, and what is `shown` instead; keep the URL."""
    if permalink.came_with_link(name):
        listed = ", ".join(f"'{one[:40]}'" for one in unknown[:4])
        which = "which is" if len(unknown) == 1 else "which are"
        then = f"; showing '{shown}'" if shown else ""
        words = f"The link has the {name.replace('_', ' ')} {listed}, {which} {why}{then}."
        st.info(literal(words), icon=":material/info:")
        permalink.show(name, permalink.get(name))


def widget_key(name: str, value: Any) -> str:
    """Return the key of a widget with this value: a new key whenever the page, not the reader, sets another value.

    A browser whose page was interrupted has not received the new value, and sends the old one with its next message.
    Under an unchanged key, the old value would count as the reader's choice. With a new key, it arrives under the
    previous key, whose value it does not change, so that `on_change` is not called.
    """
    count = f"{name}_served"
    key = f"{name}_{st.session_state.setdefault(count, 0)}"
    if st.session_state.get(key, value) != value:
        st.session_state[count] += 1
        key = f"{name}_{st.session_state[count]}"
    st.session_state[key] = value
    return key


def _marked(format_func: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return `format_func` with escaped labels, for segments and pills, which render Markdown in their options."""
    return lambda option: literal(format_func(option))


def _keep(name: str) -> None:
    """Store the value of the widget `pick_<name>` as the choice for the URL; for callbacks."""
    chosen = st.session_state[f"pick_{name}"]
    if isinstance(chosen, bool):
        chosen = "on" if chosen else "off"
    permalink.choose(name, permalink.join(chosen) if isinstance(chosen, list) else chosen)
