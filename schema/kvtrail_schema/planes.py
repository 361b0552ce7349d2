"""Whole numbers as planes of bytes: all lowest bytes, then all next ones, no more planes than the largest number needs.

A plane whose bytes look random lies outside what is compressed: a compressor finds nothing in it, and has one table of
frequencies for all that it is given. What is written in an order is read in that order; a shape says how each stream lies.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]
Signed = npt.NDArray[np.int64]

_WIDEST: Final = 8
_RAW_BITS: Final = 4
"""A shape: how many planes there are, and from this bit on which of them lie outside."""
_RANDOM_BITS: Final = 7.3
_LN2: Final = 0.6931


class PlaneWriter:
    """Collects streams of numbers. Costs some 10 ns a number and plane."""

    def __init__(self) -> None:
        self.shapes: list[int] = []
        self._raw: list[bytes] = []
        self._packed: list[bytes] = []

    def put(self, numbers: npt.NDArray[Any], *, are_ids: bool = False) -> None:
        """Whole numbers from 0 to 2^64 - 1. Those of ids are taken for random without a look."""
        wide = np.ascontiguousarray(numbers, dtype="<u8")
        width = width_of(wide)
        planes = np.ascontiguousarray(wide.view(np.uint8).reshape(-1, _WIDEST)[:, :width].T)
        shape = width
        for place, plane in enumerate(planes):
            is_random = are_ids or _looks_random(plane)
            (self._raw if is_random else self._packed).append(plane.tobytes())
            shape |= is_random << (_RAW_BITS + place)
        self.shapes.append(shape)

    def put_signed(self, numbers: Signed) -> None:
        """Whole numbers of either sign, small ones near 0 in few planes."""
        self.put(zigzag(numbers))

    def put_bytes(self, content: bytes) -> None:
        """Bytes whose number the reader knows."""
        self._packed.append(content)

    def sections(self) -> tuple[bytes, bytes]:
        """What lies outside of the compression, and what inside."""
        return b"".join(self._raw), b"".join(self._packed)


class PlaneReader:
    """Reads streams in the order in which they were written. Trusts nothing: a stream that is not there is a ValueError."""

    def __init__(self, shapes: list[int], raw: memoryview, packed: memoryview) -> None:
        self._shapes = iter(shapes)
        self._raw, self._packed = raw, packed

    @property
    def bytes_left(self) -> int:
        """How many bytes inside of the compression nobody has asked for yet."""
        return self._packed.nbytes

    def take(self, count: int) -> Numbers:
        """So many whole numbers.

        Raises:
            ValueError: they are not there.
        """
        shape = next(self._shapes, -1)
        width = shape & ((1 << _RAW_BITS) - 1)
        if not 0 <= shape < 1 << (_RAW_BITS + width) or width > _WIDEST:
            raise ValueError(f"a stream of shape {shape}")
        if not width:
            return np.zeros(count, dtype=np.uint64)
        wide = np.zeros((count, _WIDEST), dtype=np.uint8)
        for place in range(width):
            is_raw = bool(shape >> (_RAW_BITS + place) & 1)
            wide[:, place] = np.frombuffer(self._cut(count, is_raw=is_raw), dtype=np.uint8)
        return wide.view("<u8").reshape(-1).astype(np.uint64, copy=False)

    def take_signed(self, count: int) -> Signed:
        """So many whole numbers of either sign.

        Raises:
            ValueError: they are not there.
        """
        return unzigzag(self.take(count))

    def take_bytes(self, count: int) -> memoryview:
        """So many bytes.

        Raises:
            ValueError: they are not there.
        """
        return self._cut(count, is_raw=False)

    def see_end(self) -> None:
        """See that nothing is left.

        Raises:
            ValueError: bytes or streams that nobody asked for.
        """
        if self._raw.nbytes or self._packed.nbytes or next(self._shapes, None) is not None:
            raise ValueError(f"{self._raw.nbytes} and {self._packed.nbytes} bytes behind the last column")

    def _cut(self, count: int, *, is_raw: bool) -> memoryview:
        """The next bytes of a section."""
        section = self._raw if is_raw else self._packed
        if count > section.nbytes:
            raise ValueError(f"{count} bytes where {section.nbytes} are left")
        if is_raw:
            self._raw = section[count:]
        else:
            self._packed = section[count:]
        return section[:count]


def width_of(numbers: Numbers) -> int:
    """How many bytes the largest of some numbers needs."""
    return (int(numbers.max()).bit_length() + 7) // 8 if len(numbers) else 0


def zigzag(numbers: Signed) -> Numbers:
    """Either sign as none: 0, -1, 1, -2 … become 0, 1, 2, 3 …"""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def unzigzag(numbers: Numbers) -> Signed:
    """The inverse of `zigzag`."""
    return (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64)


def _looks_random(plane: npt.NDArray[np.uint8]) -> bool:
    """Whether a byte of a plane holds nearly eight bits of news: its entropy, corrected for the size of the sample.

    The correction is that of Miller and Madow (1955): (different values - 1) / 2n.
    """
    counts = np.bincount(plane)
    counts = counts[counts > 0]
    if len(counts) < min(len(plane), 1 << 8) // 2:
        return False
    shares = counts / len(plane)
    entropy = -float((shares * np.log2(shares)).sum()) + (len(counts) - 1) / (2 * _LN2 * len(plane))
    return entropy > _RANDOM_BITS
