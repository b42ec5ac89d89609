"""Write a static site: pages, scripts, and a data file for each figure of each selection of runs."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from embryo_core import results
from embryo_core import runs as run_files
from embryo_core.browser import component
from embryo_core.browser.time_bar import bar_data
from embryo_core.comparison import UNITS, Unit
from embryo_core.curves.step_scales import SCALES
from embryo_core.errors import EmbryoError, ResultsError, SiteError
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.overview import training_phases
from embryo_core.figures.smoothing import WINDOWS
from embryo_core.runs.atomic_files import locked, replacing, sha256
from embryo_core.runs.trust import read_json
from embryo_core.runs.trust_list import MAX_FILE_BYTES
from embryo_core.site.live import write_live
from embryo_core.site.note import to_html
from embryo_core.site.packages import PLOTLY, add_packages
from embryo_core.site.pages import PAGES
from embryo_core.site.parts import write_data
from embryo_core.types import Run

MANIFEST = "embryo-site.json"  # marks a folder as a site, and stores the fingerprint of each selection's data
OWN_FILES = re.compile(
    rf"{MANIFEST}|(index|{'|'.join(PAGES)})\.html|assets/(live/)?[\w-][\w.-]*|data/(site|[\w+-][\w.+-]*/[\w-]+)\.js"
    r"|live/\d+/(graph\.onnx|(tokenizer|about)\.json|step\d+\.safetensors)"
)
ASSET_FOLDER = Path(__file__).parent
MAX_PAIRED_RUNS = 3  # with more runs than this, a run is shown alone and beside all others, but not in pairs


@dataclass(frozen=True)
class RunSelection:
    """A selection of runs that a visitor can make: one run, and the runs beside it."""

    runs: tuple[Run, ...]

    @property
    def folder(self) -> str:
        """Return the name of its data folder, in plain characters whatever the runs are called."""
        names = [run.name for run in self.runs]
        plain = re.sub(r"[^A-Za-z0-9_.+-]", "_", "+".join(names))[:60].strip(".")
        return f"{plain}-{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:8]}"

    @property
    def fingerprint(self) -> str:
        """Return a hash that changes with everything that is shown: results, logs, run.json, and this package."""
        return hashlib.sha256("".join([_program_fingerprint(), *map(_fingerprint, self.runs)]).encode()).hexdigest()


def write_site(runs: Sequence[Run], folder: Path, title: str = "Embryo", note: str = "", live: int = 0) -> list[str]:
    """Write the site of some runs to a folder; return the data folders of the selections that were drawn anew.

    `note` is Markdown for the first page; `live` is the number of each run's checkpoints that a browser can query. The
    folder must be new, empty, or an earlier site, whose data are reused if the results are unchanged. On SiteError,
    the folder is left unchanged.
    """
    for run in runs:
        if not any(results.steps_by_metric(run).values()):
            raise SiteError(
                f"Run '{run.name}' has no results yet; make some with: python -m embryo_core evaluate {run.name}"
            )
    if len({run.name for run in runs}) < len(runs):
        raise SiteError("Two of these runs have the same name; rename one of them.")
    drawn_folders, folder, title = [], folder.resolve(), title.encode(errors="replace").decode()
    if not folder.name:
        raise SiteError(f"{folder} cannot be written: it is the root of the file system. Name another folder.")
    try:
        earlier = _read_manifest(folder)
        with _lock_folder(folder), replacing(folder, _refuse_others) as temporary:
            temporary.mkdir()
            _write(temporary / MANIFEST, json.dumps({"views": {}}))
            live_runs = write_live(runs, temporary, live) if live else None
            for selection in (selections := list(_selections(runs))):
                data = Path("data", selection.folder)
                if earlier.get(selection.folder) == selection.fingerprint and (folder / data).is_dir():
                    shutil.copytree(folder / data, temporary / data)  # the results are unchanged
                else:
                    _write_selection(selection, temporary)
                    drawn_folders.append(selection.folder)
            _write_frame(temporary, runs, selections, {"title": title, "note": to_html(note), "live": live_runs})
            _write(
                temporary / MANIFEST,
                json.dumps({"views": {selection.folder: selection.fingerprint for selection in selections}}),
            )
    except OSError as reason:
        raise SiteError(
            f"{folder} cannot be written ({reason.strerror or reason}); nothing of it was changed. Name another folder."
        ) from None
    return drawn_folders


def _selections(runs: Sequence[Run]) -> Iterator[RunSelection]:
    """Yield the selections that a visitor can make: each run alone, in pairs (MAX_PAIRED_RUNS), and with all others."""
    for run in runs:
        other_runs = tuple(candidate for candidate in runs if candidate is not run)
        yield RunSelection((run,))
        if len(other_runs) > 1 and len(runs) <= MAX_PAIRED_RUNS:
            yield from (RunSelection((run, other_run)) for other_run in other_runs)
        if other_runs:
            yield RunSelection((run, *other_runs))


# === The earlier site ===


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock on a site's folder. Raises SiteError while another process writes it."""
    lock = folder.with_name(f".{folder.name}.lock.tmp")
    with locked(lock, SiteError(f"{folder} is being written by another process; wait for it, or name another folder.")):
        try:
            yield
        finally:
            lock.rmdir()


def _refuse_others(folder: Path) -> None:
    """Raise SiteError if a folder to be replaced contains files that are not a site's, such as .git."""
    paths = [folder, *folder.rglob("*")] if folder.exists() else []
    if foreign_file := next((path for path in paths if not _is_own(path, folder)), None):
        raise SiteError(
            f"{folder} would be replaced, and {foreign_file} is not a file of a site; name a new folder, or move it "
            "elsewhere."
        )


def _is_own(path: Path, folder: Path) -> bool:
    if path.is_symlink() or path.is_dir():
        return not path.is_symlink()
    return path != folder and bool(OWN_FILES.fullmatch(path.relative_to(folder).as_posix()))


def _read_manifest(folder: Path) -> dict[str, str]:
    """Return the fingerprint of each selection of an earlier site; empty if no manifest can be read."""
    with suppress(ResultsError):
        return read_json(folder / MANIFEST, folder, dict[str, dict[str, str]], ResultsError).get("views", {})
    return {}


@cache
def _program_fingerprint() -> str:
    """Return a hash of this package's Python and JavaScript files."""
    paths = sorted(path for path in Path(str(files("embryo_core"))).rglob("*") if path.suffix in (".py", ".js"))
    return hashlib.sha256("".join(map(sha256, paths)).encode()).hexdigest()


def _fingerprint(run: Run) -> str:
    roots = dict.fromkeys(run.results.rglob("*"), run.results)
    roots |= {run.path / name: run.path for name in ("run.json", "log.jsonl", run_files.AUDIT_FILE)}
    lines = [f"{path.name} {_digest(path, folder)}" for path, folder in sorted(roots.items()) if path.is_file()]
    steps = [(checkpoint.step, checkpoint.has_weights) for checkpoint in run_files.checkpoints(run)]
    return json.dumps([run.name, lines, steps])


def _digest(path: Path, root: Path) -> str:
    """Return the SHA-256 of a file, or the reason why no reader opens it."""
    try:
        return run_files.digest(path, root, ResultsError, MAX_FILE_BYTES)
    except ResultsError as reason:
        return str(reason)


# === Data ===


def _write_selection(selection: RunSelection, folder: Path) -> None:
    """Write the data of a selection: a file for each page and each figure."""
    runs = selection.runs
    for name, (title, make) in PAGES.items():
        key = f"{selection.folder}/{name}"
        try:
            page = make(runs, AxisChoice().for_run(runs[0]))
            entries = [part.write(runs, key, folder) for part in page.parts]
            headline, steps = page.headline, _steps_with_data(runs[0], page.metric)
        except EmbryoError as error:
            entries, headline, steps = [], str(error), []
        parts = [entry for entry in entries if entry]
        headline = headline or next((entry["headline"] for part in parts for entry in part.get("choices", ())), "")
        if not parts and not headline:
            headline = f"{title}: nothing of this has been computed for run '{runs[0].name}'."
        write_data(folder, key, {"headline": headline, "stops": steps, "parts": parts})


def _steps_with_data(run: Run, metric: str) -> list[int]:
    """Return the checkpoints' steps at which metrics with this prefix have data; empty without a prefix."""
    step_sets = (steps for name, steps in results.steps_by_metric(run).items() if metric and name.startswith(metric))
    return sorted(set().union(*step_sets) & {checkpoint.step for checkpoint in run_files.checkpoints(run)})


# === Frame ===


def _write_frame(
    folder: Path, runs: Sequence[Run], selections: Sequence[RunSelection], site_options: dict[str, Any]
) -> None:
    """Write HTML, scripts, styles, and the data of all pages; `site_options` has the title, note and live runs."""
    assets = folder / "assets"
    for name in ("site.js", "site.css"):
        _write(assets / name, _read(name))
    if site_options["live"]:
        _write(assets / "live.js", _read("live_model.js") + _read("live.js"))
    _write(assets / "parts.js", component.read("clipboard.js", "panels.js") + _read("curves.js") + _read("parts.js"))
    _write(assets / "components.js", component.classic_scripts())
    try:
        add_packages([PLOTLY], assets)
    except SiteError:  # without npm, the larger bundle of Plotly's Python package
        shutil.copyfile(str(files("plotly") / "package_data" / "plotly.min.js"), assets / "plotly.min.js")
    site_data = {
        **site_options,
        "template": go.Figure().layout.template.to_plotly_json(),
        "pages": [{"name": name, "title": page} for name, (page, _) in PAGES.items()],
        # a list, since a JavaScript object does not keep this order for numeric names
        "names": [run.name for run in runs],
        "runs": {run.name: _run(run) for run in runs},
        "windows": WINDOWS,
        "views": {"\n".join(run.name for run in selection.runs): selection.folder for selection in selections},
    }
    write_data(folder, "site", site_data)
    html = _read("page.html")
    for name, (page, _) in PAGES.items():
        page_html = html.replace("{page}", name).replace("{title}", escape(f"{page} · {site_options['title']}"))
        _write(folder / ("index.html" if name == "overview" else f"{name}.html"), page_html)


def _run(run: Run) -> dict[str, Any]:
    """Return the data of a run that all pages share: its time bar, and its axis in each unit that it records."""
    checkpoints, axis = run_files.checkpoints(run), AxisChoice().for_run(run)
    steps = [checkpoint.step for checkpoint in checkpoints]
    bar = bar_data(checkpoints, steps[-1], axis, training_phases(run))
    units = {unit: _unit(run, unit, steps) for unit in UNITS[1:] if AxisChoice(unit=unit).supports(run, run)}
    titles = {"title": axis.title, "heading": axis.step_heading("")}
    return {"bar": bar, **titles, "units": units if len(steps) > 1 else {}}


def _unit(run: Run, unit: Unit, steps: Sequence[int]) -> dict[str, Any]:
    """Return a run's axis in a unit: the counts at its steps, their positions and the axis layout on both scales."""
    axes = {scale: AxisChoice(scale, unit).for_run(run) for scale in SCALES}
    layouts = {scale: axis.set_range(go.Figure(), steps).layout.xaxis.to_plotly_json() for scale, axis in axes.items()}
    values = {scale: axis.values(steps) for scale, axis in axes.items()}
    return {
        "name": axes["log"].title,
        "heading": axes["log"].step_heading(""),
        "counts": axes["log"].counts(steps),
        "values": values,
        "axes": layouts,
    }


def _read(name: str) -> str:
    return (ASSET_FOLDER / name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
