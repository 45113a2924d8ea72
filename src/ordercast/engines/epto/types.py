"""The arrays that the engine is made of."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Ticks: TypeAlias = NDArray[np.int32]
Numbers: TypeAlias = NDArray[np.int32]
Seeds: TypeAlias = NDArray[np.uint64]
Offsets: TypeAlias = NDArray[np.int64]
