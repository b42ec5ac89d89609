"""Tiny decoders with random weights, and a series of one in the layout of transformers' Trainer."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import ByteLevelBPETokenizer
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from embryo_core.sources.add import add
from embryo_core.types import Run
from tests.conftest import SAMPLE

END = "<|endoftext|>"
NAMES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
OF_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 2}
OWN = {  # families with other names of sizes, or with more sizes
    "gpt2": OF_GPT2,
    "openai-gpt": OF_GPT2,
    "gptj": OF_GPT2 | {"rotary_dim": 8},
    "codegen": OF_GPT2 | {"rotary_dim": 8, "n_head": 4},
    "gpt_bigcode": OF_GPT2,
    "ctrl": OF_GPT2 | {"dff": 48},
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 2},
    "gpt_neo": {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]]},
    "opt": NAMES | {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 2},
    "xglm": {"d_model": 32, "num_layers": 2, "attention_heads": 2, "ffn_dim": 48},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    "gemma": NAMES | {"head_dim": 24, "num_key_value_heads": 1},
    "gemma2": NAMES | {"head_dim": 24, "num_key_value_heads": 1, "query_pre_attn_scalar": 24},
    "gemma3_text": NAMES | {"head_dim": 24, "num_key_value_heads": 1, "query_pre_attn_scalar": 24},
    "phi3": NAMES | {"num_key_value_heads": 2},
    "qwen3": NAMES | {"head_dim": 24, "num_key_value_heads": 1},
}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def config_of(family: str, vocabulary: int = 700, positions: int = 40, **change: Any) -> Any:
    """Return the configuration of a tiny model of a family, two layers deep."""
    own = OWN.get(family, NAMES | {"num_key_value_heads": 1})
    names = {"max_position_embeddings": positions, "initializer_range": 0.3, "vocab_size": vocabulary}
    return AutoConfig.for_model(family, **own | SPECIAL | names | change)


def make(family: str, seed: int = 0, **change: Any) -> PreTrainedModel:
    """Return a tiny model of a family with random weights."""
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(config_of(family, **change), attn_implementation="eager").eval()


def write_tokenizer(folder: Path, begin: bool = False) -> PreTrainedTokenizerFast:
    """Write a byte-level tokenizer without mask, trained on the sample; with `begin` a token begins every text."""
    trained = ByteLevelBPETokenizer()
    trained.train([str(SAMPLE / "text.txt")], vocab_size=600, special_tokens=[END], show_progress=False)
    if begin:
        trained._tokenizer.post_processor = TemplateProcessing(single=f"{END} $A", special_tokens=[(END, 0)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, bos_token=END, eos_token=END)
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_series(folder: Path, family: str, steps: tuple[int, ...], begin: bool = False, **change: Any) -> Path:
    """Write checkpoint-STEP folders, each with random weights, a tokenizer and a Trainer's state; return `folder`."""
    for step in steps:
        checkpoint = folder / f"checkpoint-{step}"
        make(family, step, **change).save_pretrained(checkpoint)
        write_tokenizer(checkpoint, begin)
        logged = [{"step": s, "loss": 6.0 - s / 10, "learning_rate": 1e-3, "epoch": 0.1} for s in range(5, step + 1, 5)]
        state = {"global_step": step, "max_steps": steps[-1], "log_history": logged}
        (checkpoint / "trainer_state.json").write_text(json.dumps(state))
    return folder


def add_series(root: Path, family: str, steps: tuple[int, ...], begin: bool = False, **change: Any) -> Run:
    """Add a series as a run of the data root, named after its family, with copies of its weights."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMBRYO_DATA", str(root))
        patch.setenv("XDG_CONFIG_HOME", str(root / "settings"))
        source = write_series(root / "series", family, steps, begin, **change)
        return add([str(source)], family, copy=True).run


def learn(checkpoint: Path, texts: list[list[int]], updates: int = 150) -> None:
    """Train a checkpoint to predict the next pieces of texts (ids), so that some of its answers are right."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(checkpoint)
    longest = max(map(len, texts))
    ids = torch.tensor([text + [0] * (longest - len(text)) for text in texts])
    labels = torch.tensor([text + [-100] * (longest - len(text)) for text in texts])
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(updates):
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(checkpoint)
