"""Both paths of the engine: every test of this room that asks for `kernels` runs with the fast ones and without."""

import pytest

from embryo_core.engine.kernels import SETTINGS


@pytest.fixture(params=SETTINGS)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """EMBRYO_KERNELS as "fast" and as "plain"."""
    monkeypatch.setenv("EMBRYO_KERNELS", request.param)
    return request.param
