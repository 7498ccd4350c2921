"""Pictures and sentences in one space: what trains the appearance network further.

    picture(x) = unit(W · network(x)),   text(t) = unit(t + MLP(t))

with t the unit vector of the frozen sentence encoder. The heads serve the training alone; what ships is the
network.
"""

from __future__ import annotations

from torch import Tensor, nn

from wordreel.lab.models.appearance.config import PictureTextConfig
from wordreel.lab.models.appearance.efficientnet_lite import EfficientNetLite
from wordreel.lab.models.batch import unit


class PictureText(nn.Module):
    """The network and both heads."""

    def __init__(self, config: PictureTextConfig) -> None:
        super().__init__()
        self.config = config
        self.network = EfficientNetLite(
            config.stages,
            stem=config.stem,
            features=config.features,
            classes=config.classes,
            halving=config.halving,
        )
        self.dropout = nn.Dropout(config.dropout)
        self.picture_head = nn.Linear(config.features, config.sentence)
        self.text_head = nn.Sequential(
            nn.Linear(config.sentence, config.hidden),
            nn.GELU(),
            nn.Dropout(config.text_dropout),
            nn.Linear(config.hidden, config.sentence),
        )

    def embed_features(self, features: Tensor) -> Tensor:
        """`[n, features]` of the network to unit vectors `[n, sentence]`."""
        return unit(self.picture_head(self.dropout(features)))

    def embed_sentences(self, sentences: Tensor) -> Tensor:
        """Sentence vectors `[n, sentence]` to unit vectors of the same size."""
        return unit(sentences + self.text_head(sentences))
