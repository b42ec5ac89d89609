"""The sizes of a model in a checkpoint's config.json, and the largest number of parameters that they allow."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, defstruct
from msgspec.structs import force_setattr

from embryo_core.families import ENCODERS, EncoderLayout
from embryo_core.runs.value_types import Word, resolve

Width = Annotated[int, Meta(ge=1, le=2**16)]
Inner = Annotated[int, Meta(ge=1, le=2**18)]
Positions = Annotated[int, Meta(ge=1, le=2**20)]
SmallCount = Annotated[int, Meta(ge=1, le=1024)]
OTHER_NAMES: dict[str, tuple[Any, str]] = {  # size -> its type, its names in DistilBERT, GPT-2, other decoders
    "hidden_size": (Width, "dim n_embd d_model"),
    "num_hidden_layers": (SmallCount, "n_layers n_layer num_layers"),
    "num_attention_heads": (SmallCount, "n_heads n_head num_heads attention_heads"),
    "intermediate_size": (Inner, "hidden_dim n_inner ffn_dim"),
    "max_position_embeddings": (Positions, "n_positions n_ctx max_seq_len model_max_length"),
}
WITHOUT_HEADS = frozenset("falcon_mamba fnet mamba rwkv".split())  # families that mix pieces without attention
# families that read texts of any length
WITHOUT_POSITIONS = frozenset("bloom falcon_mamba mamba mamba2 recurrent_gemma rwkv xlstm".split())
ASSUMED_POSITIONS = 2048  # longest text in pieces, for these families
MAX_PARAMETERS = 2**34  # parameters of a model; BERT-large has 0.34 billion, Pythia-12b 12 billion
OTHER_LAYOUT = EncoderLayout("", masked_word_heads=(), names={})  # layout of families that only transformers reads
NOT_ABOUT_MODEL = (  # fields of config.json about its storage, or without an effect on outputs
    "transformers_version _name_or_path dtype torch_dtype use_cache bos_token_id eos_token_id sep_token_id "
    "cls_token_id mask_token_id attn_implementation _attn_implementation gradient_checkpointing output_attentions "
    "output_hidden_states return_dict id2label label2id problem_type finetuning_task task_specific_params"
).split()
SLACK = 4  # families that only transformers reads may have this many times the counted parameters


def layer_flops(length: int, hidden: int, inner: int) -> int:
    """Return the floating-point operations of one layer on `length` pieces, given its hidden and inner size.

    This is 8 L H^2 + 4 L^2 H + 4 L H I; a multiply-add counts as two (Narayanan et al., 2021, appendix, for I = 4 H).
    """
    return length * (8 * hidden**2 + 4 * length * hidden + 4 * hidden * inner)


def layer_group(i: int, layers: int, groups: int) -> int:
    """Return the group whose weights layer i has, rounded as in transformers: layer 9 of 18 in 14 groups is in 6."""
    return int(i / (layers / groups))


if TYPE_CHECKING:
    Others = Struct
else:
    Others = defstruct(  # a field for each other name of a size
        "Others",
        [(other, kind | None, 0) for kind, others in OTHER_NAMES.values() for other in others.split()],
        frozen=True,
    )


class Architecture(Others, frozen=True, kw_only=True):
    """The sizes in the config.json of a checkpoint, named as in transformers' configurations."""

    model_type: Word
    vocab_size: Annotated[int, Meta(ge=1, le=2**22)]
    max_position_embeddings: Positions = 0
    hidden_size: Width = 0
    num_hidden_layers: SmallCount = 0
    num_attention_heads: SmallCount = 0  # 0: the family has none
    intermediate_size: Inner | None = 0  # None: four times hidden_size
    head_dim: Width | None = None  # None: hidden_size divided by the number of heads
    hidden_act: Word | None = None  # required by the fast engine
    embedding_size: Width | None = None  # None: hidden_size
    type_vocab_size: Annotated[int, Meta(ge=0, le=2**10)] = 2
    num_hidden_groups: SmallCount = 1  # number of distinct layers, in families that share them
    inner_group_num: SmallCount = 1
    is_decoder: bool = False
    layer_norm_eps: Annotated[float, Meta(gt=0, lt=1)] = 1e-12
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        optional = {"num_attention_heads"} if self.model_type in WITHOUT_HEADS else set()
        for name, (_, others) in OTHER_NAMES.items():
            value = next(filter(None, (getattr(self, alias) for alias in (name, *others.split()))), 0)
            if name == "intermediate_size" and self.model_type not in ENCODERS:
                value = value or 4 * self.hidden_size
            if name == "max_position_embeddings" and self.model_type in WITHOUT_POSITIONS:
                value = value or ASSUMED_POSITIONS
            if not (value or name in optional):
                raise ValueError(f"Object missing required field `{name}`")
            force_setattr(self, name, value)
        if self.num_attention_heads and not self.head_dim and self.hidden_size % self.num_attention_heads:
            raise ValueError(f"hidden_size {self.hidden_size} is not divisible by {self.num_attention_heads} heads")
        if self.num_hidden_groups > self.num_hidden_layers:
            raise ValueError(f"{self.num_hidden_groups} groups are more than {self.num_hidden_layers} layers")
        if self.model_type in ENCODERS and not self.type_vocab_size:
            raise ValueError("type_vocab_size is 0, and the model adds the embedding of a segment")
        if self.layout.shares_layers and self.inner_group_num != 1:
            raise ValueError(f"inner_group_num is {self.inner_group_num}; only 1, one layer per group, is supported")
        if self._largest_count > MAX_PARAMETERS:
            raise ValueError(f"the model has {self._largest_count:,} parameters; the maximum is {MAX_PARAMETERS:,}")

    @property
    def width(self) -> int:
        """Return the size E of the embeddings."""
        return self.embedding_size if self.embedding_size and self.layout.factorised else self.hidden_size

    @property
    def is_projected(self) -> bool:
        """Return whether embeddings are projected before the first layer."""
        return self.layout.always_projected or self.width != self.hidden_size

    @property
    def group_count(self) -> int:
        """Return the number of layers with separate weights, or of groups of layers that share theirs."""
        return self.num_hidden_groups if self.layout.shares_layers else self.num_hidden_layers

    @property
    def layer_parameters(self) -> int:
        """Return the number of parameters in all layers, counting shared ones once."""
        hidden, inner = self.hidden_size, self.intermediate_size or 0
        layer = 4 * (hidden + 1) * hidden + (hidden + 1) * inner + (inner + 1) * hidden + 4 * hidden
        return layer * self.group_count

    @property
    def max_parameters(self) -> int:
        """Return the largest number of parameters that the weights may have."""
        return self._largest_count if self.model_type in ENCODERS else SLACK * self._largest_count

    @property
    def _largest_count(self) -> int:
        """Count the parameters of the largest model of these sizes: with untied decoder, pooler and a second head."""
        hidden, rows = self.hidden_size, self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        heads = (self.width + 1) * hidden + (hidden + 1) * (self.width + 2 * hidden) + 4 * (self.width + hidden)
        return self.layer_parameters + self.vocab_size * self.width + rows * self.width + 2 * self.vocab_size + heads

    @property
    def layout(self) -> EncoderLayout:
        """Return the layout of the family's checkpoints."""
        return ENCODERS.get(self.model_type, OTHER_LAYOUT)


class Rotation(Struct, frozen=True):
    """`rope_parameters` or `rope_scaling` in a config.json."""

    rope_theta: Annotated[float, Meta(ge=1, le=1e12)] | None = None
    partial_rotary_factor: Annotated[float, Meta(gt=0, le=1)] | None = None
    rope_type: Word = "default"
    type: Word = "default"


class DecoderConfig(Struct, frozen=True):
    """The fields of a decoder's config.json, besides sizes, that the fast engine uses; None: the family's default."""

    hidden_act: Word | None = None
    activation_function: Word | None = None
    layer_norm_eps: Annotated[float, Meta(gt=0, lt=1)] = 1e-5
    layer_norm_epsilon: Annotated[float, Meta(gt=0, lt=1)] = 1e-5
    tie_word_embeddings: bool | None = None
    use_parallel_residual: bool | None = None
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    add_cross_attention: bool = False
    attention_bias: bool = True
    head_dim: int | None = None
    rotary_pct: Annotated[float, Meta(gt=0, le=1)] = 0.25
    rotary_emb_base: Annotated[float, Meta(ge=1, le=1e12)] = 10_000
    rope_parameters: Rotation | None = None
    rope_scaling: Rotation | None = None

    @property
    def epsilon(self) -> float:
        """Return the epsilon of layer normalisations, under any of its names."""
        return self.layer_norm_eps if self.layer_norm_eps != 1e-5 else self.layer_norm_epsilon

    @property
    def is_plain(self) -> bool:
        """Return whether the decoder has only parts and positions that the fast engine supports."""
        rotations = [rotation for rotation in (self.rope_parameters, self.rope_scaling) if rotation]
        others = self.add_cross_attention or not self.attention_bias or self.head_dim
        return not others and all(rotation.rope_type == rotation.type == "default" for rotation in rotations)

    @property
    def rotation(self) -> tuple[float, float]:
        """Return the base of the frequencies, and the share of a head that is rotated."""
        rotation = self.rope_scaling or self.rope_parameters or Rotation()
        return rotation.rope_theta or self.rotary_emb_base, rotation.partial_rotary_factor or self.rotary_pct


def model_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a config.json that describe the model, not its storage; null fields are left out."""
    return {name: value for name, value in config.items() if name not in NOT_ABOUT_MODEL and value is not None}


resolve(globals())
