"""Tests that training FLOPs are those that torch counts in the matrix products of the same model."""

import json
from dataclasses import replace

import pytest
import torch
from torch.nn import ModuleList
from torch.utils.flop_counter import FlopCounterMode

from embryo_core import runs
from embryo_core.comparison import training_flops
from embryo_core.comparison.cost import PASSES, cost_changes, parameters
from embryo_core.errors import BrokenRun
from embryo_core.types import Origin, Run, StepUnit
from tests import decoders

LENGTH = 16
SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "vocab_size": 100,
    "max_position_embeddings": 32,
}
ONE_SEQUENCE = {"batch_size": 1, "sequence_length": LENGTH, "short_steps": 0, "masked_share": 1.0}


def count_flops(model: torch.nn.Module) -> int:
    """Count the FLOPs of the matrix products of one forward pass on one sequence."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval().set_attn_implementation("eager")
        model(input_ids=torch.ones(1, LENGTH, dtype=torch.long))
    return counter.get_total_flops()


@pytest.mark.parametrize("embedding", [8, SIZES["hidden_size"], None])
def test_update_costs_three_forward_passes(tiny_run: Run, embedding: int | None):
    """A pass runs the layers, ALBERT's projection of embeddings of any size, and the masked-word head everywhere."""
    from transformers import AlbertConfig, AlbertForMaskedLM, BertConfig, BertForMaskedLM

    config = SIZES | ({"embedding_size": embedding} if embedding else {})
    built = AlbertForMaskedLM(AlbertConfig(**config)) if embedding else BertForMaskedLM(BertConfig(**config))
    run = replace(tiny_run, family="albert" if embedding else "bert", config=config | ONE_SEQUENCE)
    assert training_flops(run, 1) == PASSES * count_flops(built)


def test_generator_and_discriminator_are_both_counted(tiny_run: Run):
    """Every position is masked here, so both models run on the whole sequence."""
    from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

    config = SIZES | {"embedding_size": 8}
    smaller = config | {"hidden_size": 12, "intermediate_size": 48, "num_attention_heads": 1}
    both = ElectraForPreTraining(ElectraConfig(**config)), ElectraForMaskedLM(ElectraConfig(**smaller))
    run = replace(tiny_run, config=config | ONE_SEQUENCE | {"generator_size": 0.5})
    assert training_flops(run, 1) == PASSES * sum(map(count_flops, both))


def test_short_sequences_of_the_first_updates_are_counted(tiny_run: Run):
    """The first eight updates have other batches than the last two."""
    config = tiny_run.config | {"short_steps": 8, "short_batch_size": 4, "short_sequence_length": 8}
    run, rest = replace(tiny_run, config=config), replace(tiny_run, config=tiny_run.config | {"short_steps": 0})
    first = replace(tiny_run, config=config | {"batch_size": 4, "sequence_length": 8, "short_steps": 0})
    assert training_flops(run, 10) == pytest.approx(training_flops(first, 8) + training_flops(rest, 2))


def test_long_sequences_among_short_ones_are_counted(tiny_run: Run):
    """Of the first eight updates every third is long: the third and the sixth."""
    config = tiny_run.config | {"short_steps": 8, "short_batch_size": 4, "short_sequence_length": 8, "long_every": 3}
    run, rest = replace(tiny_run, config=config), replace(tiny_run, config=tiny_run.config | {"short_steps": 0})
    short = replace(rest, config=rest.config | {"batch_size": 4, "sequence_length": 8})
    assert training_flops(run, 2) == training_flops(short, 2)
    assert training_flops(run, 10) == pytest.approx(training_flops(short, 6) + training_flops(rest, 4))


def test_continued_run_includes_the_cost_of_its_parent(own_run: Run, monkeypatch):
    """Without its parent run the cost is unknown."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    going_on = replace(own_run, name="on", origin=Origin(own_run.name, 8, 0, 0, "0" * 64))
    assert training_flops(going_on, 12) == pytest.approx(training_flops(own_run, 12))
    assert training_flops(replace(own_run, origin=Origin("gone", 8, 0, 0, "0" * 64)), 12) is None


def test_cost_before_the_origin_is_that_of_the_parent(own_run: Run, monkeypatch):
    """The second run continues the first at step 8, and the third continues the second at step 16."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    second = replace(own_run, name="second", path=own_run.path.parent / "second")
    second = replace(second, origin=Origin(own_run.name, 8, 0, 0, "0" * 64))
    runs.write_run(second)
    third = replace(own_run, name="third", origin=Origin("second", 16, 0, 0, "0" * 64))
    for step in (4, 12, 20):
        assert training_flops(second, step) == pytest.approx(training_flops(own_run, step))
        assert training_flops(third, step) == pytest.approx(training_flops(own_run, step))


def test_growing_masked_share_counts_as_its_final_value(tiny_run: Run):
    """Every batch has as many masked positions as the last one."""
    grows, all_along = (
        replace(tiny_run, config=tiny_run.config | share)
        for share in ({"masked_share": 0.15, "masked_share_end": 0.3}, {"masked_share": 0.3})
    )
    assert training_flops(grows, 8) == training_flops(all_along, 8) > training_flops(tiny_run, 8)


def test_cost_changes_where_short_sequences_end(tiny_run: Run):
    """A continued run counts from its origin; there is no change if all of its sequences are short or none is."""
    config = tiny_run.config | {"steps": 16}
    bent = replace(tiny_run, config=config | {"short_steps": 8})
    assert cost_changes(bent) == (8,)
    assert cost_changes(replace(bent, origin=Origin("first", 100, 0, 0, "0" * 64))) == (108,)
    assert [cost_changes(replace(bent, config=config | {"short_steps": steps})) for steps in (0, 16)] == [(), ()]


def test_run_that_continues_itself_has_an_unknown_cost(own_run: Run, monkeypatch):
    """A damaged run.json must not cause an endless recursion."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    runs.write_run(replace(own_run, origin=Origin(own_run.name, 8, 0, 0, "0" * 64)))
    assert training_flops(runs.open_run(own_run.name), 12) is None


def test_cost_is_unknown_without_a_batch_size_or_updates(tiny_run: Run):
    """A foreign run has no batch size, and a run whose steps count tokens has no updates."""
    assert training_flops(replace(tiny_run, config=SIZES), 8) is None
    assert training_flops(replace(tiny_run, step_unit=StepUnit.TOKENS), 8) is None


@pytest.mark.parametrize("name", ["masked_share", "masked_share_end", "generator_size", "learning_rate"])
def test_settings_that_would_overflow_are_refused(own_run: Run, name: str):
    """A masked share of 1e308, for example, would give an infinite cost."""
    card = json.loads((own_run.path / "run.json").read_text())
    card["config"][name] = 1e308
    (own_run.path / "run.json").write_text(json.dumps(card))
    with pytest.raises(BrokenRun, match=r"run\.json is not valid"):
        runs.read_run(own_run.path)


def test_largest_allowed_settings_have_a_finite_cost(tiny_run: Run):
    """Each whole number is the largest that run.json may have."""
    largest = dict.fromkeys([*SIZES, "batch_size", "sequence_length", "short_steps", "short_batch_size"], 2**63 - 1)
    run = replace(tiny_run, config=largest | {"short_sequence_length": 2**63 - 1, "generator_size": 1.0})
    assert 1e300 > training_flops(run, 2**63 - 1) > 1e100


def test_decoder_predicts_every_token(tiny_run: Run):
    """The head is only the output product, at each position of a sequence."""
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    run = replace(tiny_run, family="gpt_neox", config=SIZES | ONE_SEQUENCE | {"masked_share": 0.15})
    assert training_flops(run, 1) == PASSES * count_flops(GPTNeoXForCausalLM(GPTNeoXConfig(**SIZES)))


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "llama", "mpt", "openai-gpt", "ctrl", "mamba"])
def test_parameters_of_decoders_are_counted_by_part(family: str, tmp_path):
    """The parts sum to all parameters of the model, tied heads counted once, and the layers include no head."""
    run = decoders.add_series(tmp_path, family, (0,))
    model = decoders.make(family)
    counts = parameters(run)
    assert sum(counts.values()) == model.num_parameters()
    assert counts["word embeddings"] == model.get_input_embeddings().weight.numel()
    layers = next(part for part in model.modules() if isinstance(part, ModuleList) and len(part) == 2)
    assert counts["layers"] == sum(parameter.numel() for parameter in layers.parameters())
    assert counts.get("position and segment embeddings", 0) == 40 * 32 * (family in ("gpt2", "openai-gpt"))


def test_bias_of_a_tied_head_is_counted(tmp_path):
    """ModernBERT's `decoder.bias` is no copy, unlike BERT's, although `decoder.weight` is one."""
    run = decoders.add_series(tmp_path, "modernbert-decoder", (0,))
    model = decoders.make("modernbert-decoder")
    assert model.decoder.bias is not None and model.decoder.weight is model.get_input_embeddings().weight
    assert sum(parameters(run).values()) == model.num_parameters()
