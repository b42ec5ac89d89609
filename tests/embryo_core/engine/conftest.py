"""Run every test of this folder that requests `kernels` twice: with the fast kernels and with plain torch."""

import pytest

from embryo_core.engine.kernels import SETTINGS


@pytest.fixture(params=SETTINGS)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set EMBRYO_KERNELS to "fast", then to "plain", and return it."""
    monkeypatch.setenv("EMBRYO_KERNELS", request.param)
    return request.param
