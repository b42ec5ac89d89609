"""Tests of the table of designs, which describes runs and marks the rows in which they differ."""

import json
from dataclasses import replace

import pytest
from transformers import AutoConfig, AutoModelForPreTraining

from embryo_core import runs
from embryo_core.comparison import design, designs, differing_choices, parameters
from embryo_core.errors import BrokenRun
from embryo_core.types import Origin, Run


def test_parameters_are_those_of_the_model(tiny_run: Run):
    """The parts sum to the number that torch counts, in which shared parameters count once."""
    model = AutoModelForPreTraining.from_pretrained(tiny_run.path / "checkpoints" / "step16")
    counts = parameters(tiny_run)
    assert sum(counts.values()) == sum(parameter.numel() for parameter in model.parameters())
    assert counts["layers"] == sum(
        parameter.numel() for parameter in model.albert.encoder.albert_layer_groups.parameters()
    )
    assert counts["word embeddings"] == model.albert.embeddings.word_embeddings.weight.numel()


@pytest.mark.parametrize(("share", "groups", "repeated"), [("none", 1, 0), ("attention", 1, 3), ("ffn", 2, 2)])
def test_weights_shared_by_layers_are_counted_once(own_run: Run, share: str, groups: int, repeated: int):
    """If only one part is shared, the checkpoint has a copy of that part for each layer."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 48}
    sizes |= {"vocab_size": 700, "embedding_size": 16, "max_position_embeddings": 40, "num_hidden_groups": 4}
    model = AutoModelForPreTraining.from_config(AutoConfig.for_model("albert", **sizes))
    folder = runs.checkpoint(own_run, 16).path
    model.save_pretrained(folder)
    (folder / "manifest.json").unlink()
    runs.write_manifest(folder, 16, None, None)
    layer = model.albert.encoder.albert_layer_groups[0].albert_layers[0]
    of_part = {"attention": [layer.attention], "ffn": [layer.ffn, layer.ffn_output, layer.full_layer_layer_norm]}
    own = sum(parameter.numel() for part in of_part.get(share, []) for parameter in part.parameters())
    counts = parameters(replace(own_run, config=own_run.config | sizes | {"share": share, "num_hidden_groups": groups}))
    assert sum(counts.values()) == sum(parameter.numel() for parameter in model.parameters()) - repeated * own


def test_parameters_are_unknown_without_weights(own_run: Run):
    for checkpoint in runs.checkpoints(own_run):
        runs.remove_weights(checkpoint)
    assert parameters(own_run) is None and design(own_run)["parameters"] is None


def test_only_differing_rows_are_marked(tiny_run: Run):
    other = replace(
        tiny_run,
        name="other",
        objective="masked language model",
        config=tiny_run.config | {"hidden_dropout_prob": 0.5},
        corpus=tiny_run.corpus | {"sources": ["law.txt"]},
    )
    table = designs([tiny_run, other])
    assert list(table["row"][table["differs"]]) == ["sentence loss", "dropout", "domain"]
    assert table.set_index("row").loc["sentence loss", ["tiny", "other"]].tolist() == ["sentence order", "none"]
    assert differing_choices(tiny_run, other) == ["sentence loss", "dropout", "domain"]
    electra = replace(other, objective="masked language model + replaced token detection")
    assert design(electra)["sentence loss"] == "none"
    assert not designs([tiny_run, tiny_run])["differs"].any()


def test_training_text_is_identified_by_its_sources(tiny_run: Run):
    """Its number of tokens depends on the tokenizer, so it is no choice; files of one name differ by their SHA-256."""
    named = [{"name": f"{name}.txt", "sha256": 64 * digit} for name, digit in zip("abc", "123")]
    one = replace(tiny_run, corpus={"sources": named, "train": {"tokens": 900}})
    cut = replace(one, corpus={"sources": named[::-1], "train": {"tokens": 1000}}, tokenizer_sha256=64 * "0")
    table = designs([one, replace(cut, name="cut")]).set_index("row")
    assert table.loc["tokens of the text", ["tiny", "cut"]].tolist() == [900, 1000]
    assert differing_choices(one, cut) == ["tokenizer"]
    other = replace(one, corpus={"sources": [*named[:2], named[2] | {"sha256": 64 * "4"}]})
    assert differing_choices(one, other) == ["domain"] and design(one)["domain"].startswith("a.txt, 2 more (")


def test_tokenizer_is_described_by_kind_size_and_hash(tiny_run: Run):
    """A tokenizer that cannot be read has only the hash."""
    pieces, digest = tiny_run.config["vocab_size"], tiny_run.tokenizer_sha256[:8]
    assert design(tiny_run)["tokenizer"] == f"unigram, {pieces:,} pieces ({digest})"
    assert design(replace(tiny_run, tokenizer_sha256=64 * "0"))["tokenizer"] == "unknown (00000000)"


def test_embedding_size_is_a_choice_within_a_family(tiny_run: Run):
    """Models of another family may not have an embedding size."""
    config = tiny_run.config | {"embedding_size": 99}
    assert differing_choices(tiny_run, replace(tiny_run, config=config)) == ["embedding size"]
    assert differing_choices(tiny_run, replace(tiny_run, config=config, family="bert")) == ["family"]


def test_updates_are_a_choice_unless_a_run_continues(tiny_run: Run):
    """A shorter schedule lowers the learning rate earlier; a continued run has more updates without such a choice."""
    shorter = replace(tiny_run, name="shorter", config=tiny_run.config | {"steps": tiny_run.config["steps"] // 2})
    assert differing_choices(tiny_run, shorter) == ["updates"]
    goes_on = replace(shorter, origin=Origin(tiny_run.name, 8, 0, 0, 64 * "0"))
    assert differing_choices(tiny_run, goes_on) == differing_choices(goes_on, tiny_run) == []


def test_sharing_is_read_from_settings_or_checkpoint(tiny_run: Run):
    """The checkpoint is read if the run has no such setting; a part shared by itself is named by the setting."""
    assert design(tiny_run)["sharing"] == "all layers"
    half = replace(tiny_run, config=tiny_run.config | {"share": "attention"})
    assert design(half)["sharing"] == "attention alone"
    grouped = replace(half, config=half.config | {"num_hidden_groups": 2})
    assert design(grouped)["sharing"] == "attention alone within 2 groups of layers"
    assert differing_choices(half, grouped) == ["sharing"]


@pytest.mark.parametrize(
    "change", [{"hidden_dropout_prob": "a"}, {"share": ["x"], "num_hidden_groups": 0}, {"seed": [1]}]
)
def test_settings_of_wrong_type_are_refused(tiny_run: Run, own_run: Run, change: dict):
    """The error names the first faulty setting."""
    path = own_run.path / "run.json"
    card = json.loads(path.read_text())
    path.write_text(json.dumps(card | {"config": card["config"] | change}))
    with pytest.raises(BrokenRun, match=rf"run.json is not valid: .* at `\$.{next(iter(change))}`"):
        runs.read_run(own_run.path)


@pytest.mark.parametrize(
    ("change", "choice", "value"),
    [({"masked_share_end": 0.1}, "masked share", "0.15 to 0.1"), ({"max_ngram": 1}, "longest masked n-gram", 1)],
)
def test_masking_settings_are_choices(tiny_run: Run, change: dict, choice: str, value: object):
    """The settings are the masked share at the end of training and the longest n-gram that is masked together."""
    first = replace(tiny_run, config=tiny_run.config | {"masked_share": 0.15, "max_ngram": 3})
    other = replace(first, config=first.config | change)
    assert design(first)["masked share"] == 0.15 and design(other)[choice] == value
    assert differing_choices(first, other) == [choice]


@pytest.mark.parametrize(
    ("shares", "described"),
    [
        ({"mask_token_share": 0.8, "random_token_share": 0.1}, "80 % [MASK], 10 % random, 10 % as they are"),
        ({"mask_token_share": 0.85, "random_token_share": 0.0}, "85 % [MASK], 15 % as they are"),
        ({"mask_token_share": 1, "random_token_share": 0}, "100 % [MASK]"),
        ({"mask_token_share": 0.9, "random_token_share": 0.2}, None),
        ({"mask_token_share": "all", "random_token_share": 0.2}, None),
        ({"mask_token_share": 0.8, "random_token_share": None}, None),
    ],
)
def test_masked_token_replacement_is_a_choice_within_a_family(tiny_run: Run, shares: dict, described: str | None):
    """An ELECTRA, for example, replaces no token at random, whatever its design."""
    first = replace(tiny_run, config=tiny_run.config | {"mask_token_share": 0.7, "random_token_share": 0.3})
    other = replace(first, config=first.config | shares)
    assert design(first)["masked pieces"] == "70 % [MASK], 30 % random"
    assert design(other)["masked pieces"] == described
    assert differing_choices(first, other) == ["masked pieces"]
    assert "masked pieces" not in differing_choices(first, replace(other, family="bert"))


def test_training_dates_come_from_the_log(own_run: Run):
    """Without valid times in the log the dates are those of files, and are marked so."""
    log = own_run.path / "log.jsonl"
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    def trained(*times: float | None) -> list[str]:
        dated = [row | {"time": time} for row, time in zip(rows, times)]
        log.write_text("".join(json.dumps(row) + "\n" for row in dated), encoding="utf-8")
        table = design(own_run)
        return [table["trained from"], table["trained until"]]

    assert trained(1_000_000_000, 1_000_003_600) == ["2001-09-09 01:46", "2001-09-09 02:46"]
    for times in ((None, 0), (1e300, -5)):
        assert all(date.endswith(" (file)") for date in trained(*times))


def test_learning_rate_is_the_setting_or_the_highest_logged(own_run: Run):
    """Runs of transformers' Trainer have no such setting."""
    assert design(own_run)["learning rate"] == own_run.config["learning_rate"]
    foreign = replace(own_run, config={name: v for name, v in own_run.config.items() if name != "learning_rate"})
    rows = [{"split": "train", "step": step, "learning_rate": rate} for step, rate in ((1, 1e-5), (2, 3e-5), (3, None))]
    log = own_run.path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert design(foreign)["learning rate"] == 3e-5
    log.unlink()
    assert design(foreign)["learning rate"] is None
