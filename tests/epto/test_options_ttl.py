"""What EpTO's options refuse."""

import pytest

from ordercast.core import LocalError
from ordercast.protocols.epto.options import EptoOptions


def test_a_ttl_with_which_nobody_else_delivers_is_refused() -> None:
    with pytest.raises(LocalError, match="ttl must be at least 2"):
        EptoOptions(ttl=1)
    assert EptoOptions(ttl=2).ttl == 2
