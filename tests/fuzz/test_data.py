"""Tests of damaged evaluation data, which are reported in one sentence."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from embryo_core import corpora
from embryo_core.corpora.lama import Variants, read_variants
from embryo_core.corpora.minimal_pairs import read_pairs
from embryo_core.corpora.word_list import read_word_list
from embryo_core.types import Example, Fact, ListedWord, MinimalPair
from tests.conftest import SAMPLE_DATA
from tests.fuzz.conftest import OF_A_KIND, attempt, watched
from tests.fuzz.damage import damage

READERS: dict[str, Callable[[Path], list]] = {
    "treebank": corpora.read_treebank,
    "lama": corpora.read_lama,
    "words": lambda path: read_word_list(path / "words.csv"),
    "pairs": read_pairs,
    "lama-variants": lambda path: [read_variants(path)],
    "probing": lambda path: corpora.read_probing(path / "pos", "dev"),
}


def size(path: Path) -> int:
    """Return the bytes of the files below a folder."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


@pytest.mark.parametrize("kind", READERS)
def test_damaged_evaluation_data_are_reported(kind: str, tmp_path: Path):
    """Readers raise an EmbryoError with a printable message, or read what is still sound."""
    for seed in OF_A_KIND:
        rng, folder = random.Random(seed), tmp_path / str(seed) / "data" / kind
        source = SAMPLE_DATA[kind]
        copy = shutil.copytree if source.is_dir() else lambda a, b: (b.mkdir(parents=True), shutil.copy(a, b))
        copy(source, folder)
        whole = size(folder)
        damage([folder], tmp_path / "outside", rng)
        if size(folder) > 100 * whole:  # the user's own data may be large
            continue
        with watched(tmp_path / "outside"):
            content = attempt(READERS[kind], folder)
            assert all(isinstance(row, Example | Fact | ListedWord | MinimalPair | Variants) for row in content or ())
        shutil.rmtree(folder, ignore_errors=True)
