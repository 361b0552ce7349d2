"""The weights: random, a function of the shape and a seed alone, drawn on the CPU so that every device gets the same."""

from dataclasses import dataclass

import torch

from kvtrail_engine.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer's matrices, applied from the right."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    out: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor


@dataclass(frozen=True, slots=True)
class Weights:
    """All of a transformer's matrices."""

    embedding: torch.Tensor
    layers: tuple[LayerWeights, ...]
    head: torch.Tensor


def draw_weights(model: ModelSettings, seed: int, device: torch.device) -> Weights:
    """The weights of this seed, scaled so that activations keep their size."""
    generator = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int) -> torch.Tensor:
        drawn = torch.randn(rows, columns, generator=generator)
        return drawn.mul_(rows**-0.5).to(device)

    def layer() -> LayerWeights:
        width, kv, hidden = model.width, model.kv_width, model.hidden
        return LayerWeights(
            query=matrix(width, width),
            key=matrix(width, kv),
            value=matrix(width, kv),
            out=matrix(width, width),
            up=matrix(width, hidden),
            down=matrix(hidden, width),
        )

    embedding = torch.randn(model.vocabulary, model.width, generator=generator).to(device)
    layers = tuple(layer() for _ in range(model.layers))
    return Weights(embedding=embedding, layers=layers, head=matrix(model.width, model.vocabulary))
