"""Unsupported formats of other trainers: how to recognise their files and convert them to transformers' format."""

import re
from collections.abc import Iterable

TORCH = "load its state_dict into the model's class of transformers and call save_pretrained(FOLDER)"
OF_TRANSFORMERS = "load each folder with transformers 4 ({}) and call save_pretrained(FOLDER)"
FORMATS = (  # pattern of file names, trainer, how to convert them; the first match is reported
    (r"(ep\d+-ba\d+|latest)-rank\d+(\.pt)?", "Composer", "run llm-foundry's convert_composer_to_hf.py on each"),
    (r"layer_\d+-model_\d+-model_states\.pt", "GPT-NeoX", "run GPT-NeoX's tools/ckpts/convert_neox_to_hf.py on each"),
    (r"(zero_pp_rank_|bf16_zero_|mp_rank_).*_states\.pt", "DeepSpeed", "run the zero_to_fp32.py beside them on each"),
    (r"model_optim_rng\.pt", "Megatron-LM", "export each with Megatron Bridge, or Megatron's tools/checkpoint"),
    (
        r"__\d+_\d+\.distcp",
        "torch.distributed",
        "run python -m torch.distributed.checkpoint.format_utils on each, then " + TORCH,
    ),
    (r"lit_model\.pth", "LitGPT", "run litgpt convert_from_litgpt on each"),
    (r"checkpoint(_\d+_\d+|_last|_best)\.pt", "fairseq", "run transformers 4's convert script of the family on each"),
    (r".*\.ckpt-?\d*\.(index|meta)", "TensorFlow 1", "run python -m pretrain import on their folder"),
    (r"tf_model\.h5", "TensorFlow", OF_TRANSFORMERS.format("from_tf=True")),
    (r"flax_model\.msgpack", "Flax", OF_TRANSFORMERS.format("from_flax=True")),
    (
        r"adapter_model\.(safetensors|bin)",
        "PEFT, an adapter alone",
        "merge each with merge_and_unload() and save_pretrained",
    ),
    (r".*\.gguf", "llama.cpp", "get the weights that it was made from"),
    (r".*\.ckpt", "Lightning", f"load each with load_from_checkpoint, or {TORCH}"),
    (r".*\.pth?", "torch", TORCH),
)


def other_format(names: Iterable[str]) -> str:
    """Return how to convert the first file of another trainer among these names, for the end of a message; else ""."""
    files = sorted({name.rpartition("/")[2] for name in names})
    for pattern, trainer, how in FORMATS:
        if named := next((name for name in files if re.fullmatch(pattern, name)), None):
            return f" {named} is a file of {trainer}: {how}, and add the result."
    return ""
