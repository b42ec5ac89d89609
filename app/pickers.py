"""Pickers whose choice is kept in the URL: one or several options, switches, smoothing, layers, heads and texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import notices, permalink
from embryo_core import query
from embryo_core.figures.markdown import literal
from embryo_core.figures.smoothing import WINDOWS

SMOOTHING = "smooth"  # name in the URL
OPEN = "open"  # name in the URL of the list of unfolded sections
NUMBER_WIDTH = 110  # pixels: width of a box for a layer or a head
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
SCALINGS = {"raw": "As measured", "rescaled": "Relative to last step"}  # value in the URL -> label


def pick_one(
    name: str,
    label: str,
    options: Sequence[Any] | Mapping[Any, str],
    default: Any = None,
    format_func: Callable[[Any], str] = str,
    segmented: bool = False,
    widget: Callable[..., Any] = st.selectbox,
    optional: bool = False,
    report: bool = True,
    hidden: Mapping[str, str] = MappingProxyType({}),
    then: Callable[[Any], object] = lambda chosen: None,
    **appearance: Any,
) -> Any:
    """Pick one of the options with a `widget`, or with segments if they are few; `name` is its name in the URL.

    Options may be a mapping to their labels; else `format_func` labels them. An `optional` choice is left out of the
    URL while it is the first option. If a link names none of the options, `report` shows a message, and the URL is kept
    until the reader chooses one. `hidden` maps options that another picker excludes to the label of that picker. `then`
    as in `draw_widget`.
    """
    if isinstance(options, Mapping):
        options, format_func = [*options], options.__getitem__
    texts = {str(option): option for option in options}
    value = texts.get(permalink.get(name) or "", default if default in options else options[0])
    if segmented:
        widget = partial(st.segmented_control, required=True)
    labelled = _marked(format_func) if segmented else format_func
    chosen = draw_widget(name, value, widget, label, options, format_func=labelled, then=then, **appearance)
    permalink.put_in_url(name, None if optional and chosen == options[0] else chosen)
    if report:
        picker = hidden.get(permalink.get(name) or "")
        check_link(name, texts, format_func(chosen), f"hidden by the choice of {picker}" if picker else "not here")
    return chosen


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
    received = permalink.get(name)
    kept = set(default if received is None else permalink.split(received))
    if report and permalink.came_with_link(name) and not kept & {*options}:
        kept = set(default or options)
        if not received:
            notices.note(f"The link names no {name.replace('_', ' ')}; showing the default.")
    widget = partial(st.pills, selection_mode="multi") if pills else st.multiselect
    value = [option for option in options if option in kept]
    chosen = draw_widget(
        name, value, widget, label, options, format_func=_marked(format_func) if pills else format_func
    )
    permalink.put_in_url(name, None if set(chosen) == set(default) else permalink.join(chosen))
    if (
        report
        and received
        and (unknown := [entry for entry in permalink.split(received) if entry and entry not in options])
    ):
        report_unknown(name, unknown)
    return [option for option in options if option in chosen]


def pick_switch(name: str, label: str, default: bool = False, optional: bool = False) -> bool:
    """Pick on or off; an `optional` switch is left out of the URL while it has its default. See `pick_one`."""
    chosen = draw_widget(name, SWITCHED.get(permalink.get(name) or "", default), st.toggle, label)
    shown = "on" if chosen else "off"
    permalink.put_in_url(name, None if optional and chosen == default else shown)
    check_link(name, SWITCHED, shown)
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
        permalink.put_in_url(choice, None)
    permalink.put_in_url(OPEN, permalink.join(sorted(opened)) or None)


def row() -> DeltaGenerator:
    """Return a container that draws pickers in a row."""
    return st.container(horizontal=True, vertical_alignment="bottom", gap="medium")


def options() -> DeltaGenerator:
    """Return a popover for rarely changed options of a page's figures."""
    return st.popover("Options", icon=":material/tune:")


def pick_smoothing() -> None:
    """Draw a slider for the smoothing of the page's curves."""
    pick_one(
        SMOOTHING,
        "Smoothing",
        WINDOWS,
        format_func=_smoothing_name,
        widget=st.select_slider,
        optional=True,
        help="Adds the mean of this number of neighbouring points to each curve. Markers stay as measured.",
        width=150,
    )


def chosen_smoothing() -> int:
    """Return the smoothing in the URL, or 1 (none) if the URL has no value of the slider."""
    return {str(points): points for points in WINDOWS}.get(permalink.get(SMOOTHING) or "", 1)


def _smoothing_name(points: int) -> str:
    return {1: "off", 3: "3 (paper)"}.get(points, str(points))


def pick_number(name: str, count: int, default: int) -> int:
    """Pick a layer or a head, counted from 1; `name` is "layer" or "head"."""
    return pick_one(name, name.capitalize(), range(1, count + 1), default, width=NUMBER_WIDTH)


def pick_head(layers: int, heads: int, default: Sequence[int]) -> tuple[int, int]:
    """Pick and return a layer and one of its heads."""
    return pick_number("layer", layers, default[0]), pick_number("head", heads, default[1])


def choose_head(layer: int, head: int) -> None:
    """Choose a layer and a head; for callbacks."""
    permalink.choose_all(layer=layer, head=head)


def pick_rescaled(label: str) -> bool:
    """Pick whether curves are divided by their last values, and return it."""
    return pick_one("unit", label, SCALINGS, segmented=True) == "rescaled"


def pick_text(name: str, label: str, default: str = "", **appearance: Any) -> str:
    """Draw a line of text and return it; `name` is its name in the URL."""
    value = chosen_text(name, label, default)
    chosen = draw_widget(name, value, st.text_input, label, max_chars=MAX_CHARACTERS[name], **appearance)
    permalink.put_in_url(name, chosen if chosen != default else None)
    return chosen


def chosen_text(name: str, label: str, default: str = "") -> str:
    """Return the text in the URL, or the default; a text above its limit is replaced by the default, with a warning."""
    chosen, limit = permalink.get(name), MAX_CHARACTERS[name]
    if chosen is None:
        return default
    if len(chosen) > limit:
        notices.warn(f"“{label}” has {len(chosen):,} characters; the maximum is {limit:,}. Shorten it.")
        permalink.choose(name, default)
        return default
    return chosen


def report_unknown(name: str, unknown: Sequence[str], shown: str = "", why: str = "not here") -> None:
    """Report that the page's link names something that does not exist, and what is `shown` instead; keep the URL."""
    if permalink.came_with_link(name):
        listed = ", ".join(f"'{value[:40]}'" for value in unknown[:4])
        which = "which is" if len(unknown) == 1 else "which are"
        then = f"; showing '{shown}'" if shown else ""
        notices.note(f"The link has the {name.replace('_', ' ')} {listed}, {which} {why}{then}.")
        permalink.put_in_url(name, permalink.get(name))


def check_link(name: str, known: Iterable[str], shown: str, why: str = "not here") -> None:
    """Report that the page's link has a value that is not one of the known ones, and what is `shown` instead."""
    if (received := permalink.get(name)) is not None and received not in known:
        report_unknown(name, [received], shown, why)


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


def draw_widget(
    name: str,
    value: Any,
    widget: Callable[..., Any],
    *arguments: Any,
    then: Callable[[Any], object] = lambda chosen: None,
    **options: Any,
) -> Any:
    """Draw a widget that shows a value, and return its value; the reader's choice is stored for the URL.

    `then` is called with the choice before the page is drawn again.
    """
    key = f"pick_{name}"
    st.session_state[key] = value

    def picked() -> None:
        chosen = st.session_state[key]
        if isinstance(chosen, bool):
            permalink.choose(name, "on" if chosen else "off")
        elif isinstance(chosen, list):
            permalink.choose(name, permalink.join(chosen))
        else:
            permalink.choose(name, "" if chosen is None else chosen)
        then(chosen)

    return widget(*arguments, key=key, on_change=picked, **options)


def _marked(format_func: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return `format_func` with escaped labels, for segments and pills, which render Markdown in their options."""
    return lambda option: literal(format_func(option))
