"""The forward pass of one chunk of one sequence over paged KV.

Equal bits by construction: fp32, one sequence per matrix product, and chunks that start on the block grid, so that a
chunk's shapes depend on its position alone and never on how the KV before it came to be there.
"""

import torch

from kvtrail_engine.model.rotary import Rotary
from kvtrail_engine.model.weights import LayerWeights, draw_weights
from kvtrail_engine.settings import ModelSettings

EPSILON = 1e-6


def _normed(hidden: torch.Tensor) -> torch.Tensor:
    """Root-mean-square norm over the width."""
    return hidden * torch.rsqrt(hidden.square().mean(-1, keepdim=True) + EPSILON)


class Transformer:
    """Runs on the engine's thread. Submits work for the device and does not wait for it."""

    def __init__(self, settings: ModelSettings, seed: int, block_tokens: int, device: torch.device) -> None:
        self._settings = settings
        self._block_tokens = block_tokens
        self._device = device
        self._weights = draw_weights(settings, seed, device)
        self._rotary = Rotary(settings.head_width, settings.max_positions, device)
        places = torch.arange(block_tokens, device=device)
        self._future = places.unsqueeze(0) > places.unsqueeze(1)

    def forward(self, tokens: torch.Tensor, start: int, kv: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Logits after the last of `tokens`, which stand at `start` onwards, within one block.

        Writes their keys and values into the block `slots[-1]` and reads those of all blocks in `slots`. `kv` is the
        arena's tensor. The tensors must be on the device already.
        """
        hidden = self._weights.embedding.index_select(0, tokens)
        for number, layer in enumerate(self._weights.layers):
            hidden = hidden + self._attention(layer, _normed(hidden), start, kv[:, number], slots)
            hidden = hidden + torch.nn.functional.silu(_normed(hidden) @ layer.up) @ layer.down
        return _normed(hidden[-1:]) @ self._weights.head

    def _attention(
        self, layer: LayerWeights, x: torch.Tensor, start: int, kv: torch.Tensor, slots: torch.Tensor
    ) -> torch.Tensor:
        """Causal attention of the chunk over everything up to its own end; heads that share keys share one product."""
        model, count = self._settings, x.shape[0]
        query = self._rotary.turn((x @ layer.query).view(count, model.heads, model.head_width), start)
        key = self._rotary.turn((x @ layer.key).view(count, model.kv_heads, model.head_width), start)
        self._store(kv, slots, start, key.reshape(count, -1), x @ layer.value)
        keys, values = self._gather(kv, slots, start + count)
        grouped = query.transpose(0, 1).reshape(model.kv_heads, -1, model.head_width)
        scores = (grouped @ keys).mul_(model.head_width**-0.5).view(model.heads, count, -1)
        if count > 1:
            scores[:, :, start:].masked_fill_(self._future[:count, :count], float("-inf"))
        shares = torch.softmax(scores, dim=-1).view(model.kv_heads, -1, start + count)
        mixed = (shares @ values).view(model.heads, count, model.head_width)
        return mixed.transpose(0, 1).reshape(count, model.width) @ layer.out

    def _store(self, kv: torch.Tensor, slots: torch.Tensor, start: int, key: torch.Tensor, value: torch.Tensor) -> None:
        """Write the chunk's keys and values into their block."""
        first = start % self._block_tokens
        rows = torch.stack((key, value)).unsqueeze(0)
        kv[:, :, first : first + key.shape[0]].index_copy_(0, slots[-1:], rows)

    def _gather(self, kv: torch.Tensor, slots: torch.Tensor, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys as [kv_heads, head_width, tokens] and values as [kv_heads, tokens, head_width], up to `stop`."""
        shape = (-1, self._settings.kv_heads, self._settings.head_width)
        keys = kv[:, 0].index_select(0, slots).view(*shape)[:stop]
        values = kv[:, 1].index_select(0, slots).view(*shape)[:stop]
        return keys.permute(1, 2, 0), values.transpose(0, 1)
