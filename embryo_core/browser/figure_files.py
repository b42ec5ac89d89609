"""The data of the buttons that save maps, which draw their files themselves, as SVG or PNG."""

from typing import Any

from embryo_core.figures.file_layout import SIZES


def map_sizes(small_print: str) -> dict[str, Any]:
    """Return for each size of a file its inches, pixels and small print (see `Figure.file_sizes`)."""
    return {
        columns: {"inches": size.inches, "pixels": size.pixels, "print": small_print} for columns, size in SIZES.items()
    }
