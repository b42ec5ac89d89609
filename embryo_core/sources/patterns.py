"""Patterns of checkpoint names that contain a step: "step{step}-tokens{tokens}B" matches "step1000-tokens4B".

A pattern is a name with fields in braces in place of numbers. A field matches a whole number. A unit right after the
field (k, M, B, T; BT for billions of tokens) multiplies the number and allows decimals. {step+1000} adds 1000, for a
second phase of training whose numbers start again. A step counts updates; a pattern without {step} counts sequences,
tokens or words instead. {k} is an alias of {step}.

Files in the formats of other trainers, which are not supported, are recognised by their names too.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from embryo_core.errors import RunError

FIELDS = {"step": "updates", "sequences": "sequences", "tokens": "tokens", "words": "words"}  # field -> unit
ALIASES = {"k": "step"}  # for names such as "step_{k}k"
UNIT_PATTERN = r"(?:[kKmMbBtT]T?)(?![A-Za-z])"
FIELD_PATTERN = re.compile(rf"\{{(\w+)(?:\+(\d{{1,15}}))?\}}({UNIT_PATTERN})?")
NUMBER_PATTERN, DECIMAL_PATTERN = r"(\d{1,18})", r"(\d{1,18}(?:\.\d{1,9})?)"
NUMBERED_PATTERN = re.compile(
    rf"\D{{1,40}}\d{{1,18}}(?:{UNIT_PATTERN})?|{DECIMAL_PATTERN}{UNIT_PATTERN}"
)  # names that may contain a step
TITLE_PATTERN = re.compile(
    r"\b(?:global_?)?(?:steps?|checkpoint|iter(?:ation)?)[ =:_#-]{0,2}"
    r"(\d{1,3}(?:,\d{3}){1,4}|\d{1,15}(?:\.\d{1,9})?)(k?)\b(?![.,]\d)",
    re.IGNORECASE,
)
MAX_COUNT = 2**63 - 1  # largest count that manifest.json can hold
UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}  # first letter -> factor
KNOWN_PATTERNS = (  # patterns tried by default; the one that matches most names is used
    "checkpoint-{step}",
    "step{step}-tokens{tokens}B",
    "step-{step}-{tokens}BT",
    "step{step}",
    "step_{step}",
    "step-{step}",
    "global_step{step}",
    "chck_{words}M",
    "pytorch_model_{step}.bin",
    "{step}",
    "{tokens}B",
)


@dataclass(frozen=True)
class Counts:
    """The progress of training given in a checkpoint's name, in up to four units; None if unknown."""

    step: int | None = None
    sequences: int | None = None
    tokens: int | None = None
    words: int | None = None

    @property
    def first(self) -> tuple[int, str]:
        """Return the checkpoint's position on the axis of steps, and the unit: the first known count of FIELDS."""
        return next((count, unit) for name, unit in FIELDS.items() if (count := getattr(self, name)) is not None)


class NamePattern:
    """One pattern, such as "checkpoint-{step}". Raises RunError if it has no field or an unknown one."""

    def __init__(self, text: str):
        self.text = text
        fields = [(ALIASES.get(name, name), start, unit) for name, start, unit in FIELD_PATTERN.findall(text)]
        self._fields = [(name, int(start or 0), UNITS[unit[:1].upper()]) for name, start, unit in fields]
        names = [name for name, _, _ in self._fields]
        if not names or not set(names) <= FIELDS.keys() or len(set(names)) < len(names):
            listed = ", ".join(f"{{{name}}}" for name in FIELDS)
            raise RunError(f"The pattern '{text}' has no field, or not one of each; known: {listed}.")
        parts = re.split(FIELD_PATTERN.pattern, text)[:: FIELD_PATTERN.groups + 1]
        numbers = [DECIMAL_PATTERN + unit if unit else NUMBER_PATTERN for _, _, unit in fields] + [""]
        self._regex = re.compile("".join(re.escape(p) + number for p, number in zip(parts, numbers, strict=True)))

    def match(self, name: str) -> Counts | None:
        """Return the counts in a name; None unless the whole name matches and all counts are integers within limits."""
        matched = self._regex.fullmatch(name)
        if matched is None:
            return None
        values = zip(self._fields, matched.groups(), strict=True)
        counts = {field: Decimal(number) * unit + start for (field, start, unit), number in values}
        if any(count % 1 or count > MAX_COUNT for count in counts.values()):
            return None
        return Counts(**{field: int(count) for field, count in counts.items()})


def match_names(names: Iterable[str], patterns: Sequence[str]) -> dict[str, Counts]:
    """Return the counts of each matching name, by its first matching pattern.

    Without patterns, the one of KNOWN_PATTERNS that matches most names is used.
    """
    names = list(names)
    if patterns:
        compiled = [NamePattern(text) for text in patterns]
        matches = {name: next(filter(None, (pattern.match(name) for pattern in compiled)), None) for name in names}
        return {name: counts for name, counts in matches.items() if counts}
    tried = [{n: counts for n in names if (counts := NamePattern(text).match(n))} for text in KNOWN_PATTERNS]
    return max(tried, key=len)


def match_folders(paths: Iterable[str], patterns: Sequence[str]) -> dict[str, Counts]:
    """Return the counts of matching paths; without patterns, only in the folder with most matches.

    Raises RunError if two folders have the same number of matches.
    """
    paths = list(paths)
    if patterns:
        return match_names(paths, patterns)
    parents = sorted({path.rpartition("/")[0] for path in paths})
    matched = []
    for parent in parents:
        names = {path.rpartition("/")[2]: path for path in paths if path.rpartition("/")[0] == parent}
        matched.append({names[name]: counts for name, counts in match_names(names, []).items()})
    most = max(map(len, matched), default=0)
    pairs = zip(parents, matched, strict=True)
    best = [(parent, matches) for parent, matches in pairs if matches and len(matches) == most]
    if len(best) > 1:
        raise RunError(
            f"There are {most} checkpoints in {best[0][0]} and in {best[1][0]}; name one: OWNER/NAME/FOLDER."
        )
    return best[0][1] if best else {}


def match_titles(titles: Iterable[str], patterns: Sequence[str]) -> dict[str, Counts]:
    """Return the counts of each commit title that matches a pattern, or by default contains a whole step."""
    if patterns:
        return match_names(titles, patterns)
    matches = {title: TITLE_PATTERN.search(title) for title in titles}
    steps = {
        title: Decimal(match[1].replace(",", "")) * (1000 if match[2] else 1)
        for title, match in matches.items()
        if match
    }
    return {title: Counts(step=int(step)) for title, step in steps.items() if step % 1 == 0}


def unmatched(names: Iterable[str], matched: dict[str, Counts]) -> list[str]:
    """Return unmatched names that end in a number, such as those of another phase of training."""
    return [name for name in names if name not in matched and NUMBERED_PATTERN.fullmatch(name)]


# === Files of other trainers ===

TORCH_ADVICE = "load its state_dict into the model's class of transformers and call save_pretrained(FOLDER)"
TRANSFORMERS_ADVICE = "load each folder with transformers 4 ({}) and call save_pretrained(FOLDER)"
OTHER_FORMATS = (  # pattern of file names, trainer, how to convert them; the first match is reported
    (r"(ep\d+-ba\d+|latest)-rank\d+(\.pt)?", "Composer", "run llm-foundry's convert_composer_to_hf.py on each"),
    (r"layer_\d+-model_\d+-model_states\.pt", "GPT-NeoX", "run GPT-NeoX's tools/ckpts/convert_neox_to_hf.py on each"),
    (r"(zero_pp_rank_|bf16_zero_|mp_rank_).*_states\.pt", "DeepSpeed", "run the zero_to_fp32.py beside them on each"),
    (r"model_optim_rng\.pt", "Megatron-LM", "export each with Megatron Bridge, or Megatron's tools/checkpoint"),
    (
        r"__\d+_\d+\.distcp",
        "torch.distributed",
        "run python -m torch.distributed.checkpoint.format_utils on each, then " + TORCH_ADVICE,
    ),
    (r"lit_model\.pth", "LitGPT", "run litgpt convert_from_litgpt on each"),
    (r"checkpoint(_\d+_\d+|_last|_best)\.pt", "fairseq", "run transformers 4's convert script of the family on each"),
    (r".*\.ckpt-?\d*\.(index|meta)", "TensorFlow 1", "run python -m pretrain import on their folder"),
    (r"tf_model\.h5", "TensorFlow", TRANSFORMERS_ADVICE.format("from_tf=True")),
    (r"flax_model\.msgpack", "Flax", TRANSFORMERS_ADVICE.format("from_flax=True")),
    (
        r"adapter_model\.(safetensors|bin)",
        "PEFT, an adapter alone",
        "merge each with merge_and_unload() and save_pretrained",
    ),
    (r".*\.gguf", "llama.cpp", "get the weights that it was made from"),
    (r".*\.ckpt", "Lightning", f"load each with load_from_checkpoint, or {TORCH_ADVICE}"),
    (r".*\.pth?", "torch", TORCH_ADVICE),
)


def conversion_hint(names: Iterable[str]) -> str:
    """Return how to convert the first file of another trainer among these names, for the end of a message; else ""."""
    files = sorted({name.rpartition("/")[2] for name in names})
    for pattern, trainer, how in OTHER_FORMATS:
        if file := next((name for name in files if re.fullmatch(pattern, name)), None):
            return f" {file} is a file of {trainer}: {how}, and add the result."
    return ""
