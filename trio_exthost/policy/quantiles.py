"""Quantiles of durations in bounded memory: a histogram whose buckets grow by a constant factor.

A quantile is off by at most `ERROR` of its true value, whatever the durations are and however many there are. (The newest N
samples would forget the slow call of an hour ago, and say nothing about how wrong they are.)
"""

from __future__ import annotations

import math

ERROR = 0.02
"""A quantile is off by at most this share of its true value, between `LEAST_S` and `MOST_S`."""
LEAST_S = 1e-6
"""What is shorter counts as this long."""
MOST_S = 1e6
"""What is longer counts as this long; the maximum is exact all the same."""

_FACTOR = (1 + ERROR) / (1 - ERROR)
_PER_LOG = 1 / math.log(_FACTOR)
BUCKETS = 2 + math.ceil(_PER_LOG * math.log(MOST_S / LEAST_S))
"""More there can never be: the bound of one histogram's memory."""


class Durations:
    """How long something took, each time. Mutable, for one thread; adding takes a logarithm and a dict entry."""

    __slots__ = ("_buckets", "count", "maximum_s")

    def __init__(self) -> None:
        """Nothing yet."""
        self._buckets: dict[int, int] = {}
        self.count: int = 0
        """How many there were."""
        self.maximum_s: float = 0.0
        """The longest, exactly; 0 if there were none."""

    def add(self, seconds: float) -> None:
        """One more; what is below zero counts as zero."""
        self.count += 1
        self.maximum_s = max(self.maximum_s, seconds)
        bucket = math.ceil(math.log(min(max(seconds, LEAST_S), MOST_S)) * _PER_LOG)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    def quantile(self, share: float) -> float:
        """The shortest duration, in seconds, that at least this share of all did not exceed; 0 if there were none.

        Args:
          share: Above 0 and at most 1: 0.5 is the median.
        """
        wanted, seen = share * self.count, 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= wanted:
                # The point of the bucket that is off by the same share from both of its ends.
                return min(_FACTOR**bucket * (1 - ERROR), self.maximum_s)
        return 0.0
