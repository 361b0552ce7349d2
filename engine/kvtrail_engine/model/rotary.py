"""Rotary positions: what makes a block's keys depend on where its tokens stand."""

import torch

BASE = 10_000.0


class Rotary:
    """Tables of angles for every position, made once."""

    def __init__(self, head_width: int, positions: int, device: torch.device) -> None:
        frequencies = BASE ** (-torch.arange(0, head_width, 2, dtype=torch.float32) / head_width)
        angles = torch.outer(torch.arange(positions, dtype=torch.float32), frequencies)
        self._cosine = angles.cos().to(device)
        self._sine = angles.sin().to(device)

    def turn(self, heads: torch.Tensor, start: int) -> torch.Tensor:
        """Turn [tokens, heads, head_width], the first token standing at position `start`."""
        stop = start + heads.shape[0]
        cosine = self._cosine[start:stop].unsqueeze(1)
        sine = self._sine[start:stop].unsqueeze(1)
        first, second = heads.chunk(2, dim=-1)
        return torch.cat((first * cosine - second * sine, first * sine + second * cosine), dim=-1)
