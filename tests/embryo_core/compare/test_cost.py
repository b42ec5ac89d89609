"""Training FLOPs are those that torch counts in the products of the same model."""

import json
from dataclasses import replace

import pytest
import torch
from torch.nn import ModuleList
from torch.utils.flop_counter import FlopCounterMode

from embryo_core import runs
from embryo_core.compare import training_flops
from embryo_core.compare.cost import PASSES, cost_changes, parameters
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


def counted(model: torch.nn.Module) -> int:
    """FLOPs of the products of one forward pass on one sequence, without counting anything else."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval().set_attn_implementation("eager")
        model(input_ids=torch.ones(1, LENGTH, dtype=torch.long))
    return counter.get_total_flops()


@pytest.mark.parametrize("embedding", [8, None], ids=["factorised", "not factorised"])
def test_an_update_costs_three_forward_passes(tiny_run: Run, embedding: int | None):
    """Of the layers, shared or not, the projection, and the masked-word head at every masked position."""
    from transformers import AlbertConfig, AlbertForMaskedLM, BertConfig, BertForMaskedLM

    config = SIZES | ({"embedding_size": embedding} if embedding else {})
    built = AlbertForMaskedLM(AlbertConfig(**config)) if embedding else BertForMaskedLM(BertConfig(**config))
    run = replace(tiny_run, config=config | ONE_SEQUENCE)
    assert training_flops(run, 1) == PASSES * counted(built)


def test_a_generator_is_counted_beside_its_discriminator(tiny_run: Run):
    """The generator at the masked positions, the discriminator at all."""
    from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

    config = SIZES | {"embedding_size": 8}
    smaller = config | {"hidden_size": 12, "intermediate_size": 48, "num_attention_heads": 1}
    both = ElectraForPreTraining(ElectraConfig(**config)), ElectraForMaskedLM(ElectraConfig(**smaller))
    run = replace(tiny_run, config=config | ONE_SEQUENCE | {"generator_size": 0.5})
    assert training_flops(run, 1) == PASSES * sum(map(counted, both))


def test_short_sequences_cost_less(tiny_run: Run):
    """The first updates have other batches."""
    config = tiny_run.config | {"short_steps": 8, "short_batch_size": 4, "short_sequence_length": 8}
    run, rest = replace(tiny_run, config=config), replace(tiny_run, config=tiny_run.config | {"short_steps": 0})
    first = replace(tiny_run, config=config | {"batch_size": 4, "sequence_length": 8, "short_steps": 0})
    assert training_flops(run, 10) == pytest.approx(training_flops(first, 8) + training_flops(rest, 2))


def test_long_sequences_among_the_short_ones_are_counted(tiny_run: Run):
    """Every third update of the first eight is a long one: the third and the sixth."""
    config = tiny_run.config | {"short_steps": 8, "short_batch_size": 4, "short_sequence_length": 8, "long_every": 3}
    run, rest = replace(tiny_run, config=config), replace(tiny_run, config=tiny_run.config | {"short_steps": 0})
    short = replace(rest, config=rest.config | {"batch_size": 4, "sequence_length": 8})
    assert training_flops(run, 2) == training_flops(short, 2)
    assert training_flops(run, 10) == pytest.approx(training_flops(short, 6) + training_flops(rest, 4))


def test_a_run_that_goes_on_has_the_cost_of_the_first_too(own_run: Run, monkeypatch):
    """If the first run is available; otherwise the cost is unknown."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    going_on = replace(own_run, name="on", origin=Origin(own_run.name, 8, 0, 0, "0" * 64))
    assert training_flops(going_on, 12) == pytest.approx(training_flops(own_run, 12))
    assert training_flops(replace(own_run, origin=Origin("gone", 8, 0, 0, "0" * 64)), 12) is None


def test_before_a_run_goes_on_the_cost_is_that_of_the_first(own_run: Run, monkeypatch):
    """At step 4 of two runs that begin at steps 8 and 16, the one after the other."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    second = replace(own_run, name="second", path=own_run.path.parent / "second")
    second = replace(second, origin=Origin(own_run.name, 8, 0, 0, "0" * 64))
    runs.write_run(second)
    third = replace(own_run, name="third", origin=Origin("second", 16, 0, 0, "0" * 64))
    for step in (4, 12, 20):
        assert training_flops(second, step) == pytest.approx(training_flops(own_run, step))
        assert training_flops(third, step) == pytest.approx(training_flops(own_run, step))


def test_the_widest_batch_is_counted(tiny_run: Run):
    """Where the masked share grows to its end, every batch has as many positions as the last."""
    grows, all_along = (
        replace(tiny_run, config=tiny_run.config | share)
        for share in ({"masked_share": 0.15, "masked_share_end": 0.3}, {"masked_share": 0.3})
    )
    assert training_flops(grows, 8) == training_flops(all_along, 8) > training_flops(tiny_run, 8)


def test_the_cost_bends_where_short_sequences_end(tiny_run: Run):
    """Of a run that goes on, that many updates after its first; nowhere if all its sequences are short, or none."""
    config = tiny_run.config | {"steps": 16}
    bent = replace(tiny_run, config=config | {"short_steps": 8})
    assert cost_changes(bent) == (8,)
    assert cost_changes(replace(bent, origin=Origin("first", 100, 0, 0, "0" * 64))) == (108,)
    assert [cost_changes(replace(bent, config=config | {"short_steps": steps})) for steps in (0, 16)] == [(), ()]


def test_two_runs_that_name_each_other_cost_nothing_that_is_known(own_run: Run, monkeypatch):
    """Damaged cards do not lead in circles."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    runs.write_run(replace(own_run, origin=Origin(own_run.name, 8, 0, 0, "0" * 64)))
    assert training_flops(runs.open_run(own_run.name), 12) is None


def test_what_the_configuration_lacks_is_not_guessed(tiny_run: Run):
    """A run of others has no batch size; one that counts tokens has no updates."""
    assert training_flops(replace(tiny_run, config=SIZES), 8) is None
    assert training_flops(replace(tiny_run, step_unit=StepUnit.TOKENS), 8) is None


@pytest.mark.parametrize("name", ["masked_share", "masked_share_end", "generator_size", "learning_rate"])
def test_settings_that_would_overflow_make_no_run(own_run: Run, name: str):
    """A share of 1e308 of the sequence is infinite; run.json is refused in one sentence."""
    card = json.loads((own_run.path / "run.json").read_text())
    card["config"][name] = 1e308
    (own_run.path / "run.json").write_text(json.dumps(card))
    with pytest.raises(BrokenRun, match=r"run\.json is not valid"):
        runs.read_run(own_run.path)


def test_the_largest_settings_have_a_cost(tiny_run: Run):
    """Every whole number that a run may have gives a finite number."""
    largest = dict.fromkeys([*SIZES, "batch_size", "sequence_length", "short_steps", "short_batch_size"], 2**63 - 1)
    run = replace(tiny_run, config=largest | {"short_sequence_length": 2**63 - 1, "generator_size": 1.0})
    assert 1e300 > training_flops(run, 2**63 - 1) > 1e100


def test_a_decoder_predicts_every_piece(tiny_run: Run):
    """Its head is the output product alone, at each position of a sequence."""
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    run = replace(tiny_run, family="gpt_neox", config=SIZES | ONE_SEQUENCE | {"masked_share": 0.15})
    assert training_flops(run, 1) == PASSES * counted(GPTNeoXForCausalLM(GPTNeoXConfig(**SIZES)))


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "llama"])
def test_parameters_of_decoders_are_counted_by_part(family: str, tmp_path):
    """All of them, a tied head once; none of the layers' is a head's."""
    run = decoders.add_series(tmp_path, family, (0,))
    model = decoders.make(family)
    found = parameters(run)
    assert sum(found.values()) == model.num_parameters()
    assert found["word embeddings"] == model.get_input_embeddings().weight.numel()
    layers = next(part for part in model.modules() if isinstance(part, ModuleList) and len(part) == 2)
    assert found["layers"] == sum(one.numel() for one in layers.parameters())
