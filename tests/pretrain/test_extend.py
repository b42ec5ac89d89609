"""Tests of runs continued with new pieces: words that the vocabulary had cut, initialised as means of pieces."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from embryo_core import runs
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Change, Run
from pretrain import tokenizer as tokenizers
from pretrain.__main__ import main

pytestmark = pytest.mark.usefixtures("eager")
SETTINGS = "steps=3 warmup_steps=1 save_every=3 state_every=1 log_every=1".split()
NEW = 20


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for runs."""
    return tmp_path_factory.mktemp("extended")


@pytest.fixture(scope="module")
def corpus(texts: tuple[Path, Path], cache: Path) -> list[str]:
    """Return the command-line options of the sample text."""
    return ["--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache)]


def extend(preset: str, corpus: list[str], root: Path) -> tuple[Run, Run, list[str]]:
    """Train a run of three updates and one that extends it; return both and the second command without its folder."""
    own = "tokenizer=wordpiece" if preset == "gpt2-tiny" else "measured_sequences=0"
    first, begin, settings = root / f"{preset}-first", [preset, *corpus], ["--set", *SETTINGS, own]
    assert main([*begin, *settings, "--run", str(first)]) == 0
    command = [*begin, "--init-from", f"{first}@2", "--extend-vocabulary", str(NEW), *settings, "--run"]
    assert main([*command, str(root / f"{preset}-extended")]) == 0
    return runs.read_run(first), runs.read_run(root / f"{preset}-extended"), command


@pytest.fixture(scope="module")
def albert(corpus: list[str], root: Path) -> tuple[Run, Run, list[str]]:
    """Return the runs and the command of the tiny ALBERT, which has a unigram vocabulary."""
    return extend("tiny", corpus, root)


def words_of(text: str, tokenizer) -> dict[str, list[str]]:
    """Return the pieces of every word of a text, as they are cut within the text."""
    pieces_of_words = {}
    for line in text.splitlines():
        encoding = tokenizer.encode(line, add_special_tokens=False)
        pieces: dict[int, list[str]] = {}
        for word, piece in zip(encoding.word_ids, encoding.tokens, strict=True):
            pieces.setdefault(word, []).append(piece)
        words = tokenizers.split_words(tokenizer, line)
        assert len(words) == len(pieces)
        pieces_of_words |= {
            tokenizers.without_prefix(word): own for word, own in zip(words, pieces.values(), strict=True)
        }
    return pieces_of_words


def check_tokenizer(first: Run, extended: Run, text: str) -> None:
    """Check that new words are one piece and others are cut as before, by transformers and embryo_core as well."""
    old, new = (tokenizers.load(run.tokenizer) for run in (first, extended))
    before, after = words_of(text, old), words_of(text, new)
    added = [new.id_to_token(i) for i in range(old.get_vocab_size(), new.get_vocab_size())]
    assert len({*added}) == NEW and {*added} <= before.keys()
    assert all(len(before[word]) > 1 and after[word] == [word] for word in added)
    assert all(after[word] == pieces for word, pieces in before.items() if word not in added)
    assert tokenizers.is_word_start(new)[-NEW:].all()
    longer = f"{added[0]}{added[1]} {added[0]} {added[0].upper()}"
    assert new.encode(longer, add_special_tokens=False).ids.count(old.get_vocab_size()) == 2
    theirs, ours = AutoTokenizer.from_pretrained(extended.tokenizer), load_tokenizer(extended)
    for line in text.splitlines():
        assert theirs(line, add_special_tokens=False).input_ids == new.encode(line, add_special_tokens=False).ids
    assert [ours.spell(piece) for piece in ours.pieces(range(len(theirs) - NEW, len(theirs)))] == added
    assert ours.decode(ours.encode_word(f"the {added[0]} the")) == f"the {added[0]} the"


def check_weights(first: Run, extended: Run) -> None:
    """Check that states and old logits are unchanged, and that a new piece has the mean logit of its old pieces."""
    old, new = (tokenizers.load(run.tokenizer) for run in (first, extended))
    kind = AutoModelForCausalLM if first.family == "gpt2" else AutoModelForMaskedLM
    ids = torch.tensor([[2, *range(5, 20), 3], [2, *range(100, 115), 3]])
    with torch.no_grad():
        before, after = (
            kind.from_pretrained(runs.checkpoint(run, 2).path, dtype=torch.float32).eval()(
                ids, output_hidden_states=True
            )
            for run in (first, extended)
        )
    for ours, theirs in zip(after.hidden_states, before.hidden_states, strict=True):
        assert torch.equal(ours, theirs)
    size = old.get_vocab_size()
    assert after.logits.shape[-1] == size + NEW
    np.testing.assert_allclose(after.logits[..., :size], before.logits, rtol=0, atol=1e-6)
    for i in range(size, size + NEW):
        pieces = old.encode(new.id_to_token(i), add_special_tokens=False).ids
        np.testing.assert_allclose(after.logits[..., i], before.logits[..., pieces].mean(-1), rtol=0, atol=1e-5)


def test_only_new_words_are_cut_differently(albert, texts):
    first, extended, _ = albert
    check_tokenizer(first, extended, texts[0].read_text(encoding="utf-8"))


def test_extension_preserves_function(albert):
    first, extended, _ = albert
    check_weights(first, extended)


def test_most_frequent_cut_words_are_chosen(albert, texts):
    """No word of the text that is still cut is more frequent than a chosen one."""
    first, extended, _ = albert
    old, new = (tokenizers.load(run.tokenizer) for run in (first, extended))
    text = texts[0].read_text(encoding="utf-8")
    words = [tokenizers.without_prefix(w) for line in text.splitlines() for w in tokenizers.split_words(old, line)]
    added = [new.id_to_token(i) for i in range(old.get_vocab_size(), new.get_vocab_size())]
    rest = {word for word in words if word.isalpha() and word not in added and old.token_to_id(word) is None}
    cut = [word for word in rest if len(old.encode(word, add_special_tokens=False).ids) > 1]
    assert min(map(words.count, added)) >= max(map(words.count, cut))


def test_extended_run_records_its_steps_and_change(albert):
    first, extended, _ = albert
    assert [checkpoint.step for checkpoint in runs.checkpoints(extended)] == [2, 3, 4, 5]
    assert runs.changes(extended) == (Change(2, f"{NEW} new pieces"),)
    assert extended.config["vocab_size"] == first.config["vocab_size"] + NEW
    assert runs.checkpoint(extended, 2).tokens == runs.checkpoint(first, 2).tokens
    last = load_file(runs.checkpoint(extended, 5).path / "model.safetensors")
    begun = load_file(runs.checkpoint(extended, 2).path / "model.safetensors")
    name = "albert.embeddings.word_embeddings.weight"
    assert np.abs(last[name][-NEW:] - begun[name][-NEW:]).max() > 0


def test_resumed_run_has_same_weights(albert, root):
    """One state, none, or run.json alone is enough; only run.json alone needs the first run."""
    _, extended, command = albert
    expected = runs.sha256(runs.checkpoint(extended, 5).path / "model.safetensors")

    def ends_the_same(folder: Path, command: list[str]) -> bool:
        assert main([*command, str(folder)]) == 0
        return runs.sha256(runs.checkpoint(runs.read_run(folder), 5).path / "model.safetensors") == expected

    folder = Path(shutil.copytree(extended.path, root / "again"))
    gone = ["nowhere/tiny-first@2" if part.endswith("@2") else part for part in command]
    for left in (1, 0):
        for path in sorted((folder / "state").iterdir())[left:]:
            path.unlink()
        shutil.rmtree(folder / "checkpoints" / "step5")
        assert ends_the_same(folder, gone)
    killed = root / "killed"
    killed.mkdir()
    (killed / "run.json").write_text((extended.path / "run.json").read_text())
    assert ends_the_same(killed, command)


@pytest.mark.parametrize(
    "preset", ["gpt2-tiny", *(pytest.param(name, marks=pytest.mark.slow) for name in ("bert-tiny", "electra-tiny"))]
)
def test_other_families_are_extended_too(preset, corpus, root, texts):
    """They have WordPiece vocabularies; ELECTRA has a generator as well, and GPT-2 is a decoder."""
    first, extended, _ = extend(preset, corpus, root)
    if "electra" not in preset:
        check_weights(first, extended)
    check_tokenizer(first, extended, texts[0].read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--extend-vocabulary", "50000"], "50,000 new pieces were requested"),
        (
            ["--extend-vocabulary", "20", "--set", "vocab_size=400"],
            "vocab_size 500, but these settings give 420",
        ),
        (["--extend-vocabulary", "-1"], "extend_vocabulary, received -1, must be at least 0"),
        (["--extend-vocabulary", "20", "--set", "tokenizer=bpe"], "received bpe"),
    ],
)
def test_impossible_extension_is_refused(albert, corpus, root, capsys, arguments, message):
    """The command returns 2, names the problem and creates no run."""
    first, *_ = albert
    command = ["tiny", *corpus, "--init-from", f"{first.path}@2", *arguments, "--run", str(root / "refused")]
    assert main(command) == 2
    assert message in capsys.readouterr().err and not (root / "refused").exists()


def test_extension_needs_run_to_start_from(albert, corpus, root, capsys):
    """Once begun, an extended run is not resumed with another number of new pieces."""
    _, extended, command = albert
    assert main(["tiny", *corpus, "--extend-vocabulary", "20", "--run", str(root / "refused")]) == 2
    assert "--init-from" in capsys.readouterr().err and not (root / "refused").exists()
    before = (extended.path / "run.json").read_bytes()
    other = ["10" if part == str(NEW) else part for part in command]
    assert main([*other, str(extended.path)]) == 2
    assert (extended.path / "run.json").read_bytes() == before
    assert json.loads(before)["config"]["extend_vocabulary"] == NEW
