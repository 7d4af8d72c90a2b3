"""Windows of random length, into which running text is cut for training.

Merity, Keskar and Socher, "Regularizing and optimizing LSTM language models" (2018), section 4.1:
every window is drawn anew in each epoch, so that no word is always the first of its window, whose
gradient does not reach the words before it. A window has L positions; with probability q, L / 2.
Normal noise of some positions is added, and the rate of its step is multiplied by its length / L.

Lengths are rounded to multiples of 5: a step is compiled once for each length.
"""

import dataclasses

import numpy as np

from zoo.errors import check_least, check_rates

_MULTIPLE = 5


@dataclasses.dataclass(frozen=True)
class RandomWindows:
    """Windows of about L positions, or of about half as many.

    Attributes:
      deviation: the standard deviation of a window's length, positions.
      half: q, the share of windows of about L / 2 positions.

    Example:
      >>> windows = data.RandomWindows(deviation=5.0, half=0.05)
      >>> windows.starts(200, 70, np.random.default_rng(0)).tolist()
      [0, 70, 105, 175, 250]
    """

    deviation: float = 5.0
    half: float = 0.05

    def __post_init__(self):
        check_least(self, "training.windows", deviation=0)
        check_rates(self, "training.windows", "half")

    def starts(self, width: int, length: int, generator: np.random.Generator) -> np.ndarray:
        """Draws windows until they cover a batch row.

        Args:
          width: positions of the batch row.
          length: L.
          generator: draws the lengths.

        Returns:
          int64, the first position of each window and, last, the end of the last window.
        """
        starts = [0]
        while starts[-1] < width:
            about = length / 2 if generator.random() < self.half else length
            drawn = _MULTIPLE * round(generator.normal(about, self.deviation) / _MULTIPLE)
            starts.append(starts[-1] + max(drawn, _MULTIPLE))
        return np.array(starts)


def equal_windows(width: int, length: int) -> np.ndarray:
    """Returns the starts of windows of L positions that cover a batch row."""
    return np.arange(-(-width // length) + 1) * length
