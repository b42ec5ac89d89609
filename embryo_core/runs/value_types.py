"""Types of values in a run's files: bounded numbers, texts and names, which msgspec checks."""

from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Meta, Struct
from msgspec.json import Decoder

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]  # bounded, so that sums and squares do not overflow
Share = Annotated[float, Meta(ge=0, le=1)]
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Text = Annotated[str, Meta(max_length=4096)]
Word = Annotated[str, Meta(pattern=r"^[\w.+-]{1,64}\Z")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Label = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f]{1,200}\Z")]  # no control characters
Commit = Annotated[str, Meta(pattern=r"^([0-9a-f]{40})?\Z")]
Repository = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][\w.-]{0,95}(/[A-Za-z0-9_][\w.-]{0,95})?)?\Z")]
_PLAIN = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}"
FileName = Annotated[str, Meta(pattern=rf"^{_PLAIN}\Z")]  # without folders, not hidden
RepositoryFile = Annotated[str, Meta(pattern=rf"^({_PLAIN}/){{0,5}}{_PLAIN}\Z")]  # a FileName, possibly in folders
# any name that file systems allow
AnyFileName = Annotated[str, Meta(pattern=r"^(?!\.{1,2}\Z)[^/\x00-\x1f\x7f-\x9f]{1,255}\Z")]
Scalar = Text | Whole | float | bool | None


def _nested(depth: int, leaf: Any = Scalar, most: int = 100_000) -> Any:
    """Return the type of values with up to `depth` levels of lists and objects, of up to `most` members each."""

    few = Meta(max_length=most)

    def wrap(inner: Any, _: int) -> Any:
        return leaf | Annotated[list[inner], few] | Annotated[dict[Text, inner], few]

    return reduce(wrap, range(depth), leaf)


if TYPE_CHECKING:  # type checkers reject function calls in annotations
    Nested2: TypeAlias = Any
    Nested5: TypeAlias = Any
    Configured: TypeAlias = Any
else:
    Nested2, Nested5 = _nested(2, most=1000), _nested(5)
    Configured = _nested(3, Text | Annotated[int, Meta(ge=-(2**31), le=2**31)] | Number | bool | None, 10_000)


def resolve(names: dict[str, Any]) -> None:
    """Resolve the fields of every Struct among a module's names, while the module is imported.

    Otherwise msgspec resolves them at the first use, and two threads that do so at once crash the process.
    """
    for kind in list(names.values()):
        if isinstance(kind, type) and issubclass(kind, Struct) and kind is not Struct:
            Decoder(kind)
