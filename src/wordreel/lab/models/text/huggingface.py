"""Any encoder of the transformers library as a caption network. The library is imported when it is used."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from wordreel.errors import NextStep, WeightsMissing


def library() -> Any:
    try:
        import transformers  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise WeightsMissing(
            "Hugging Face encoders need the transformers library", NextStep("run: pip install transformers")
        ) from None
    return transformers


class HuggingFace(nn.Module):
    """`ids [q, t]` and `mask [q, t]` to the last hidden states `[q, t, dim]`.

    `name` is a folder or a name in the local cache; nothing is downloaded. Of a network that reads and writes
    (T5) only the part that reads is used.
    """

    def __init__(self, name: str, dim: int) -> None:
        super().__init__()
        self.network = library().AutoModel.from_pretrained(name, local_files_only=True)
        hidden = getattr(self.network.config, "hidden_size", dim)
        if hidden != dim:
            raise ValueError(f"{name} has hidden states of {hidden} numbers; the configuration says {dim}")
        if getattr(self.network.config, "is_encoder_decoder", False):
            self.network = self.network.get_encoder()

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.network(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        return states
