"""The package's public names."""

import pretrain


def test_the_public_names_are_those_of_all():
    """What __all__ lists is there, and nothing is listed by accident."""
    assert pretrain.__all__ == ["FAMILIES", "Config", "preset"]
    assert all(hasattr(pretrain, name) for name in pretrain.__all__)
