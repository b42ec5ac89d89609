"""Reader of minimal pairs, such as BLiMP's, Zorro's and BabyLM's: pairs of a good and a bad sentence, by paradigm.

BLiMP: Warstadt et al. (2020), "BLiMP: The Benchmark of Linguistic Minimal Pairs for English". Zorro: Huebner et al.
(2021), "BabyBERTa". Columns may be named as in any of the three; some of BabyLM's files have only the sentences.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from embryo_core.corpora.data_files import read_json_lines
from embryo_core.errors import CorpusError
from embryo_core.results import read_foreign
from embryo_core.types import MinimalPair

PAIRS_FORM = "JSON lines or parquet of minimal pairs, or a folder of such files"
PARQUET = ".parquet"
SUFFIXES = (".jsonl", ".jsonl.xz", PARQUET)  # of the files of a folder that are read; hidden ones are not
# Names of columns; the first that a row has is read.
GOOD_COLUMNS, BAD_COLUMNS = ("sentence_good", "good"), ("sentence_bad", "bad")
PARADIGM_COLUMNS, PHENOMENON_COLUMNS = ("UID", "paradigm"), ("linguistics_term", "phenomenon")
MAX_NAME_LENGTH = 100  # characters of a paradigm or phenomenon


def read_pairs(path: Path, name: str = "") -> list[MinimalPair]:
    """Read the pairs of a file, or of all files in a folder and its subfolders, in the order of their names.

    Without a column for it, the paradigm is the name of the file, and the phenomenon is the paradigm. A file with
    several paradigms, or a single file at `path`, is a set named after the file. The other files of a folder form one
    set, named after the folder; `name`, if given, replaces the name of the folder at `path`. Raises CorpusError.
    """
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES))
    files = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    pairs: list[MinimalPair] = []
    counts: Counter[str] = Counter()
    for file in files:
        rows = list(_rows(file))
        paradigms = {paradigm for _, paradigm, *_ in rows}
        folder = name if name and file.parent == path else file.absolute().parent.name
        group_of = _stem(file) if len(paradigms) > 1 or file == path else folder
        for phenomenon, paradigm, good, bad in rows:
            group = "/".join(part.replace("/", "-") for part in (group_of, phenomenon, paradigm))
            pairs.append(MinimalPair(group, counts[group], good, bad))
            counts[group] += 1
    if not pairs:
        raise CorpusError(
            f"{path} has no minimal pairs; give a .jsonl or .parquet file, or a folder of them, whose rows have "
            f"{GOOD_COLUMNS[0]}, {BAD_COLUMNS[0]} and {PARADIGM_COLUMNS[0]}."
        )
    return pairs


def _stem(file: Path) -> str:
    return file.name.removesuffix(".xz").removesuffix(".jsonl").removesuffix(PARQUET)


def _rows(file: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield phenomenon, paradigm, good and bad sentence of each pair in a file."""
    for location, row in _read_parquet(file) if file.name.endswith(PARQUET) else read_json_lines(file):
        good, bad = _text(location, row, GOOD_COLUMNS), _text(location, row, BAD_COLUMNS)
        paradigm = _text(location, row, PARADIGM_COLUMNS, _stem(file))
        phenomenon = _text(location, row, PHENOMENON_COLUMNS, paradigm)
        for name in (paradigm, phenomenon):
            if len(name) > MAX_NAME_LENGTH:
                raise CorpusError(
                    f"{location}: a name has at most {MAX_NAME_LENGTH} characters, received '{name[:40]}...'."
                )
        yield phenomenon, paradigm, good, bad


def _read_parquet(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    columns = read_foreign([file])
    for number, values in enumerate(zip(*columns.values(), strict=True), 1):
        yield f"{file}, row {number}", dict(zip(columns, values, strict=True))


def _text(location: str, row: Mapping[str, Any], names: tuple[str, ...], default: str | None = None) -> str:
    """Return the text of a row in the first of the columns `names` that it has, or the default. Raises CorpusError."""
    value = next((row[name] for name in names if row.get(name) is not None), default)
    if value is None:
        columns = ", ".join(map(str, row)) or "nothing"
        raise CorpusError(f"{location}: a minimal pair needs {' or '.join(names)}, this one has {columns[:200]}.")
    if not isinstance(value, str) or not value.strip():
        raise CorpusError(f"{location}: {names[0]} must be a string that is not blank, received {str(value)[:60]!r}.")
    return value.strip()
