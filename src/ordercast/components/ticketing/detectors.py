"""From samples to a value that one can decide on: it follows lasting changes and ignores noise (section
6.1)."""

from abc import ABC, abstractmethod
from typing import Literal

from ordercast.core import Nanos

DetectorName = Literal["mean-shift", "ewma"]


class ShiftDetector(ABC):
    """Takes samples, and has a value once it has enough of them."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Nanos | None = None

    @abstractmethod
    def add(self, sample: Nanos) -> None:
        """Take a sample."""


class MeanShift(ShiftDetector):
    """The detector of the paper. The first k samples give the mean. When k samples in a row are above it, or
    k in a row below it, their mean replaces it."""

    __slots__ = ("_run", "_samples")

    def __init__(self, samples: int) -> None:
        super().__init__()
        self._samples = samples
        self._run: list[Nanos] = []

    def add(self, sample: Nanos) -> None:
        """Take a sample; one on the other side of the mean ends a run."""
        if self._run and self._side(sample) != self._side(self._run[-1]):
            self._run.clear()
        self._run.append(sample)
        if len(self._run) >= self._samples and self._side(sample) != 0:
            self.value = sum(self._run) // len(self._run)
            self._run.clear()

    def _side(self, sample: Nanos) -> int:
        """Above or below the mean, or on it; the first samples are all on one side."""
        if self.value is None:
            return 1
        return (sample > self.value) - (sample < self.value)


class Ewma(ShiftDetector):
    """An exponentially weighted mean that moves the value only when it differs from it by a quarter."""

    __slots__ = ("_count", "_mean", "_samples")

    BAND = 0.25

    def __init__(self, samples: int) -> None:
        super().__init__()
        self._samples = samples
        self._count = 0
        self._mean = 0.0

    def add(self, sample: Nanos) -> None:
        """Take a sample. Until there are enough for a value, the mean is the plain one."""
        self._count += 1
        self._mean += (sample - self._mean) / min(self._count, self._samples)
        if self._count < self._samples:
            return
        if self.value is None or abs(self._mean - self.value) > self.BAND * self.value:
            self.value = round(self._mean)


def make_detector(name: DetectorName, samples: int) -> ShiftDetector:
    """A detector by its name."""
    return MeanShift(samples) if name == "mean-shift" else Ewma(samples)
