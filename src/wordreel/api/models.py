"""`Library`: choose, adapt and run the model that answers searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from wordreel.api.handle import LibraryHandle
from wordreel.progress import ProgressCallback
from wordreel.search.query import VideoMoment

if TYPE_CHECKING:
    from wordreel.backbones.installed import Precision
    from wordreel.embed.use import ModelRow, UseResult
    from wordreel.embed.use_backbone import ConfirmDownload
    from wordreel.lab.training.tune.tune import TuneResult
    from wordreel.models.base import Model
    from wordreel.models.conversion import ConversionOptions
    from wordreel.search.video_query import VideoQuery
    from wordreel.types import QueryEmbedding


class ModelMethods(LibraryHandle):
    """The methods of `Library` about models and embeddings."""

    def models(self) -> list[ModelRow]:
        """List the models that this library can use.

        Returns:
            Each model's name and fingerprint, whether it is in use, and how many clips it has embedded.

        >>> [row.name for row in library.models()][:2]
        ['reel', 'bridge']
        """
        from wordreel.embed.use import models

        return models(self.store, self.weights)

    def use(
        self,
        model: str | PathLike[str],
        on_progress: ProgressCallback | None = None,
        *,
        conversion: ConversionOptions | None = None,
        confirm_download: ConfirmDownload | None = None,
        precision: Precision = "fp32",
    ) -> UseResult:
        """Let another model answer searches. Interrupted, the old model stays in use.

        Args:
            model: "reel", "bridge", a CLIP-like backbone (its name, a file, a folder in Hugging Face layout
                or a hub id), the folder of a trained checkpoint, a published checkpoint of CE, MoEE or MMT,
                or a model used before.
            on_progress: Called while a backbone is downloaded, with `AddProgress` while frames are embedded
                by it, and while clips are embedded.
            conversion: How to convert a published checkpoint.
            confirm_download: Asked before a backbone is downloaded; without it, nothing is.
            precision: In which the towers of a backbone are stored and run: "fp32", "fp16" or "int8".

        Returns:
            The model's name and fingerprint, and how many clips were embedded.

        Raises:
            LibraryError: There is no such model, or it was trained on other features.
            WeightsMissing: The backbone is not on this machine, and the download was refused.

        >>> library.use("no such model")
        Traceback (most recent call last):
        wordreel.errors.LibraryError: there is no model 'no such model'...
        """
        from wordreel.embed.use import use

        self._model, used = use(
            self.store,
            self.weights,
            fspath(model),
            on_progress,
            conversion=conversion,
            confirm_download=confirm_download,
            precision=precision,
            before_switch=lambda new: self._embed_banks(new, on_progress),
        )
        self._searcher = None
        return used

    def _embed_banks(self, model: Model, on_progress: ProgressCallback | None) -> None:
        """Embed the query banks with a model, so that its first search does not wait for them."""
        from wordreel.banks.embedded_bank import EmbeddedBank
        from wordreel.search.searcher import Searcher

        searcher = Searcher.open(self.store, model)
        for row in self.banks.list():
            EmbeddedBank.open(searcher, self.banks.show(row.name), on_progress)

    def tune(
        self,
        captions: Mapping[str, Sequence[str]],
        *,
        dry_run: bool = False,
        seed: int = 0,
        on_progress: ProgressCallback | None = None,
    ) -> TuneResult:
        """Adapt the default model to captions of this library's videos.

        The tuned model is stored and used only if captions of held-out videos find them better.

        Args:
            captions: File name to captions.
            dry_run: Measure only; change nothing.
            seed: Seed of the split and of training.
            on_progress: Called as training advances.

        Returns:
            Recall before and after, and whether the tuned model is in use.

        Raises:
            TrainingError: The captions are too few.
        """
        from wordreel.models.laboratory import TUNE, load

        model, tuned = load(TUNE)(
            self.store, self.weights, captions, seed=seed, dry_run=dry_run, on_progress=on_progress
        )
        if model is not None:
            self._model = model
            self._searcher = None
        result: TuneResult = tuned
        return result

    def embed(self, on_progress: ProgressCallback | None = None, *, on: str | None = None) -> int:
        """Embed the clips that are not embedded yet, from stored tracks; index a large library anew.

        Args:
            on_progress: Called as clips are embedded and the index is built.
            on: Embed on workers, as in `add`.

        Returns:
            How many clips there were.

        Raises:
            LibraryBusy: Another process writes to the library.

        >>> library.embed()
        0
        """
        with self._executor(on) as executor:
            return self._embed_and_index(on_progress, self._workers(executor))

    def reindex(self, on_progress: ProgressCallback | None = None, *, on: str | None = None) -> int:
        """Embed all clips again, from stored tracks. No video is decoded.

        Args:
            on_progress: Called as clips are embedded.
            on: Embed on workers, as in `add`.

        Returns:
            The number of clips.

        Raises:
            LibraryBusy: Another process writes to the library.

        >>> library.reindex() == len(library.store.clip_ids())
        True
        """
        from wordreel.embed.embed_library import embedding_cache

        embedding_cache(self.store, self.model).clear()
        return self.embed(on_progress, on=on)

    def encode_text(self, text: str) -> QueryEmbedding:
        """Encode one text; see `encode_texts`.

        >>> library.encode_text("green").vectors[0]
        array([0., 1., 0.], dtype=float32)
        """
        return self.encode_texts([text])[0]

    def encode_texts(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        """Encode texts with the library's model, in one batch.

        Args:
            texts: The texts.

        Returns:
            For each text `vectors [experts, dim]` and the mixture `weights [experts]`.

        Raises:
            WeightsError: The weights of the model are not on this machine.

        >>> [embedding.weights.shape for embedding in library.encode_texts(["red", "blue"])]
        [(2,), (2,)]
        """
        return self.model.encode([text.strip() for text in texts])

    def encode_video(self, video: str | PathLike[str]) -> VideoQuery:
        """Encode the clips of a file with the library's model.

        Args:
            video: A file; what the library does not know is analysed by its experts now.

        Returns:
            The clips, their `vectors [clips, experts, dim]` and `available [clips, experts]`.

        Raises:
            QueryError: The file cannot be read.

        >>> library.encode_video(media / "poppies.mp4").vectors.shape
        (1, 2, 3)
        """
        from wordreel.search.video_query import encode_video

        return encode_video(self.store, self.model, VideoMoment(video), self._analyser)
