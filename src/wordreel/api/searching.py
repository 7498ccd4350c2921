"""`Library`: search with words, files and captions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from os import PathLike, fspath
from typing import Unpack, cast

from wordreel.api.handle import LibraryHandle
from wordreel.errors import LibraryError, NextStep
from wordreel.progress import ProgressCallback
from wordreel.search.hits import CaptionMatch, Hit, Match, MatchTimeline, Results, SequenceHit
from wordreel.search.query import FilterArguments, Query, QueryArguments, VideoMoment


class SearchMethods(LibraryHandle):
    """The methods of `Library` that find something."""

    def search(
        self,
        query: str | Query,
        *,
        on_progress: ProgressCallback | None = None,
        **arguments: Unpack[QueryArguments],
    ) -> Results[Hit]:
        """Find the moments that fit some words best.

        Args:
            query: Words, or a `Query`.
            on_progress: Called while a query bank is embedded for the first time.
            **arguments: The other fields of `Query` (`then`, `limit`, `norm`, `moments`, …) and of `Filters`
                (`folder`, `kind`, `min_duration`, …), if `query` is not a `Query` that has them already.

        Returns:
            The hits, best first, with the reasons for each, as a sequence.

        Raises:
            QueryError: The query contradicts itself.
            BankError: The normalisation needs a query bank that there is not.

        >>> best = library.search("red flowers", limit=1)[0]
        >>> Path(best.path).name, best.rank
        ('poppies.mp4', 1)
        >>> [Path(hit.path).name for hit in library.search(Query("green", filters=Filters(min_duration=60)))]
        ['meadow.mp4', 'sea.mp4']
        """
        if isinstance(query, Query):
            if arguments:
                raise TypeError("give a Query or keyword arguments, not both")
        else:
            query = Query.build(query, **arguments)
        from wordreel.search.query_terms import resolve_terms

        results = self.searcher().search(resolve_terms(self.store, query), on_progress=on_progress)
        self._note_returned(results)
        return results

    def _note_returned(self, results: Results[Hit]) -> None:
        """Let the thorough pass take the files first that a search returned after a quick look."""
        from wordreel.catalogue.passes import note_returned

        quick = [hit.content for hit in results if hit.analysis == "quick"]
        if quick and self._note_hits and not self.is_replica:
            with suppress(LibraryError):  # busy or full: the order of a later pass is not worth an error
                note_returned(self.store, quick)

    def search_many(self, queries: Sequence[str | Query]) -> list[Results[Hit]]:
        """Answer several queries; their texts are encoded in one batch.

        Args:
            queries: Words or `Query` objects.

        Returns:
            The results of each query, in order.

        Raises:
            QueryError: One of the queries contradicts itself.

        >>> [Path(results[0].path).name for results in library.search_many(["red", "green", "blue"])]
        ['poppies.mp4', 'meadow.mp4', 'sea.mp4']
        """
        from wordreel.search.query_terms import resolve_terms

        asked = [resolve_terms(self.store, q if isinstance(q, Query) else Query(q)) for q in queries]
        found = self.searcher().search_many(asked)
        for results in found:
            self._note_returned(results)
        return found

    def then(self, first: str, second: str, **arguments: Unpack[QueryArguments]) -> Results[SequenceHit]:
        """Find the videos that show one thing and later another.

        Args:
            first: Words for what comes first.
            second: Words for what comes later.
            **arguments: The other fields of `Query` and `Filters`.

        Returns:
            Hits whose `start` and `end` are the first moment and whose `then` is the later one.

        Raises:
            QueryError: The query contradicts itself.

        >>> hit = library.then("blue", "blue", limit=1)[0]
        >>> Path(hit.path).name, hit.end <= hit.then[0]
        ('sea.mp4', True)
        """
        arguments["then"] = second
        return cast("Results[SequenceHit]", self.search(first, **arguments))

    def where(
        self,
        video: str | PathLike[str],
        text: str,
        *,
        norm: str = "auto",
        bank: str | None = None,
        beta: float | None = None,
    ) -> MatchTimeline:
        """Score how well words match a video over time.

        Args:
            video: A file of the library.
            text: The words.
            norm: Query-bank normalisation, as in `Query`.
            bank: The name of the bank, as in `Query`.
            beta: Inverse temperature, as in `Query`.

        Returns:
            Scores in [0, 1] for each step of time, and the best moments.

        Raises:
            LibraryError: The file is not in the library.

        >>> library.where(media / "sea.mp4", "blue").duration
        75.0
        """
        file = self.store.file(video)
        if file is None:
            step = NextStep("add it", command=f"add {fspath(video)}", page="Library")
            raise LibraryError(f"{fspath(video)} is not in the library", step)
        from wordreel.search.query_terms import resolve_terms

        query = resolve_terms(self.store, Query(text, norm=norm, bank=bank, beta=beta))
        return self.searcher().where(file.content, query)

    def like(
        self,
        video: str | PathLike[str],
        *,
        moment: float | None = None,
        limit: int = 10,
        offset: int = 0,
        **filters: Unpack[FilterArguments],
    ) -> Results[Match]:
        """Find the videos most like a file.

        Args:
            video: A video, sound or picture; it need not be in the library, and is not added.
            moment: Search only with the clip of the file at this second.
            limit: How many to return.
            offset: How many of the best to skip.
            **filters: The fields of `Filters`; they hold for what is found, not for the file.

        Returns:
            Look-alikes, best first; `like` is the moment of the file that each resembles.

        Raises:
            QueryError: The file cannot be read, or has no such moment.

        >>> [Path(match.path).name for match in library.like(media / "poppies.mp4")]
        ['sea.mp4', 'meadow.mp4']
        """
        query = Query.build(like=VideoMoment(video, moment), limit=limit, offset=offset, **filters)
        return cast("Results[Match]", self.searcher().search(query))

    def caption(
        self,
        video: str | PathLike[str],
        captions: Sequence[str],
        limit: int = 5,
        *,
        norm: str = "none",
        beta: float | None = None,
    ) -> list[CaptionMatch]:
        """Rank captions by how well they describe a file.

        Args:
            video: A file; it need not be in the library, and is not added.
            captions: The captions to choose from.
            limit: How many to return.
            norm: A normalisation that lowers captions which fit every video of the library.
            beta: Inverse temperature; chosen without labels by default.

        Returns:
            The best captions, best first.

        Raises:
            QueryError: There are no captions, or the file cannot be read.

        >>> [match.text for match in library.caption(media / "sea.mp4", ["a red car", "the blue sky"])]
        ['the blue sky', 'a red car']
        """
        from wordreel.search.caption import rank_captions
        from wordreel.search.video_query import encode_video

        encoded = encode_video(self.store, self.model, VideoMoment(video), self._analyser)
        return rank_captions(self.searcher(), encoded, captions, limit, norm, beta)

    def export_hits(self, hits: Iterable[Hit], form: str) -> str:
        """Write hits as a list that other programs read.

        Args:
            hits: The hits of a search.
            form: "csv" (a table), "edl" (CMX 3600), "otio" (OpenTimelineIO) or "m3u" (a playlist).

        Returns:
            The list as text.

        Raises:
            QueryError: There is no such format, or it cannot hold so many hits.

        >>> print(library.export_hits(library.search("red", limit=1), "m3u").splitlines()[0])
        #EXTM3U
        """
        from wordreel.search.hit_lists.formats import write_hits

        return write_hits(self.store, hits, form)
