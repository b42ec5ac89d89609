"""What goes along with a figure that leaves the page: its caption as plain text, and the paper to cite, in BibTeX."""

import re

from embryo_core.figures.markdown import JOINER

BIBTEX = """\
@inproceedings{chiang-etal-2020-pretrained,
  title = {Pretrained Language Model Embryology: The Birth of {ALBERT}},
  author = {Chiang, Cheng-Han and Huang, Sung-Feng and Lee, Hung-yi},
  booktitle = {Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing (EMNLP)},
  year = {2020},
  pages = {6813--6828},
  doi = {10.18653/v1/2020.emnlp-main.553}
}"""
CLICKS = re.compile(  # what means nothing on paper
    r"\s*(?:Click|A click|Play, or drag|Point at)\b[^.]*\.|[;,] (?:click|point at)[^.;]*(?=[.;])"
)


def plain(caption: str) -> str:
    """A caption in Markdown as plain text, without what it says about clicking."""
    unmarked = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", caption.replace("**", "").replace(JOINER, ""))
    return CLICKS.sub("", unmarked).strip()


def small_print(run: str, note: str) -> str:
    """What stands below a figure in its file: the run, or the names of several, and what was `note`d of the data."""
    return f"{_run(run)}{f'; {note}' if note else ''}. Embryo, after Chiang, Huang and Lee (2020)."


def copied(title: str, run: str, caption: str) -> str:
    """What the clipboard gets with a figure of a run, or of several by their names."""
    end = "" if title.endswith(".") else "."
    return f"{title}{end} {_run(run)}. {plain(caption)}\n\n{BIBTEX}\n"


def _run(names: str) -> str:
    return f"Run{'s' if ', ' in names else ''} {names}"
