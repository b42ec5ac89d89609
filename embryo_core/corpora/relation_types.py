"""How subjects and objects of LAMA's relations belong together: one to one, many to one, many to many."""

from typing import Literal

Kind = Literal["1-1", "N-1", "N-M"]

# LAMA's 41 relations of T-REx (Petroni et al., 2019); the paper's Table 8 has those that are 1-1 or N-1.
_RELATIONS: dict[Kind, str] = {
    "1-1": "P36 P1376",
    "N-1": "P17 P19 P20 P30 P37 P103 P127 P131 P136 P138 P140 P159 P176 P264 P276 P279 P361 P364 P407 P413 P449 P495 "
    "P740",
    "N-M": "P27 P31 P39 P47 P101 P106 P108 P178 P190 P463 P527 P530 P937 P1001 P1303 P1412",
}
KINDS: tuple[Kind, ...] = tuple(_RELATIONS)
TYPES: dict[str, Kind] = {relation: kind for kind, names in _RELATIONS.items() for relation in names.split()}
