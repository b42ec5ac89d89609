"""Write an ONNX graph: nodes, inputs and constants in the format of onnx.proto, without the onnx package.

Only what a browser's runtime reads is written (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

import struct
from collections.abc import Sequence

import numpy as np

IR_VERSION, OPSET = 9, 20  # versions of the file format and of the operators
FLOAT, INT64, FLOAT16 = 1, 7, 10  # TensorProto.DataType
ONNX_TYPES = {"F32": FLOAT, "F16": FLOAT16}  # by their names in safetensors files
Attribute = int | float | str | tuple[int, ...]


class OnnxGraph:
    """A graph that is built node by node; its values have names."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._inputs: list[bytes] = []
        self._constants: list[bytes] = []
        self._count = 0

    def input(self, name: str, data_type: int, shape: Sequence[int | str]) -> str:
        """Add an input, and return its name; in `shape`, a size that varies between calls is a name."""
        self._inputs.append(_value(name, data_type, shape))
        return name

    def constant(self, values: np.ndarray | Sequence[int] | float) -> str:
        """Add a constant, converted to int64 or float32, and return its name."""
        array = np.asarray(values)
        array = array.astype("<i8" if array.dtype.kind == "i" else "<f4")
        name, data_type = self._name(), INT64 if array.dtype.kind == "i" else FLOAT
        dims = b"".join(_number(1, size) for size in array.shape)
        self._constants.append(dims + _number(2, data_type) + _text(8, name) + _bytes(9, array.tobytes()))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Attribute) -> str:
        """Add a node, and return the name of its output."""
        output = output or self._name()
        node_fields = [_text(1, name) for name in inputs] + [_text(2, output), _text(4, operator)]
        node_fields += [_bytes(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(b"".join(node_fields))
        return output

    def to_bytes(self, output: str, shape: Sequence[int | str]) -> bytes:
        """Return the serialised model; its only output is `output`, float32 of this shape."""
        graph_fields = [_bytes(1, node) for node in self._nodes] + [_text(2, "embryo")]
        graph_fields += [_bytes(5, constant) for constant in self._constants] + [
            _bytes(11, graph_input) for graph_input in self._inputs
        ]
        graph = b"".join([*graph_fields, _bytes(12, _value(output, FLOAT, shape))])
        return _number(1, IR_VERSION) + _text(2, "embryo") + _bytes(7, graph) + _bytes(8, _number(2, OPSET))

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"


# === Protocol buffers ===


def _value(name: str, data_type: int, shape: Sequence[int | str]) -> bytes:
    """Encode the name, type and shape of a value (ValueInfoProto)."""
    shape_fields = [_text(2, size) if isinstance(size, str) else _number(1, size) for size in shape]
    dims = b"".join(_bytes(1, size) for size in shape_fields)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, data_type) + _bytes(2, dims)))


def _attribute(name: str, value: Attribute) -> bytes:
    """Encode an attribute of a node (AttributeProto); the last field is its type."""
    if isinstance(value, str):
        return _text(1, name) + _text(4, value) + _number(20, 3)
    if isinstance(value, float):
        return _text(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    return _text(1, name) + b"".join(_number(8, number) for number in value) + _number(20, 7)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value % 2**64)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Encode a number in base 128, lowest digit first; the high bit marks that a digit follows."""
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])
