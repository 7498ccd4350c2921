"""`Library`: search by a vector server, publish a library, follow a published one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordreel.api.handle import LibraryHandle
from wordreel.progress import ProgressCallback

if TYPE_CHECKING:
    from wordreel.maintain.publication import PublicationReport
    from wordreel.search.server_index import IndexStatus

RECALL_QUERIES = 100  # of a bank


class ServerMethods(LibraryHandle):
    """The methods of `Library` about servers that it is searched by or published on."""

    def use_index(
        self, address: str, *, deep: bool = False, on_progress: ProgressCallback | None = None
    ) -> IndexStatus:
        """Search by a vector server from now on: send it what it does not have, and remember its address.

        Args:
            address: `postgresql://USER@HOST/DATABASE`, `milvus://HOST`; `?mode=hnsw` searches approximately.
                The password may be in `$WORDREEL_INDEX_PASSWORD`; it is not stored.
            deep: Compare the vectors on the server too, and send those again that differ.
            on_progress: Called as clips are sent.

        Returns:
            What the server has, and its recall on the queries of the library's largest bank.

        Raises:
            IndexServerError: The server cannot be reached, or lacks something; the error says what to do.
        """
        from wordreel.banks.search_index import bank_sample
        from wordreel.search.server_index import use_server
        from wordreel.util.server_address import parse_address

        server = parse_address(address)
        self._embed_missing()
        self._searcher = None
        queries = bank_sample(self.store, self.model, RECALL_QUERIES)
        status = use_server(server, self.store, self.model, queries, on_progress, deep)
        self._index = address  # with the password, which the library does not remember
        return status

    def index_status(self) -> IndexStatus | None:
        """What the vector server has that searches the library; None if it is searched on this machine.

        Raises:
            IndexServerError: The server cannot be reached.

        >>> library.index_status() is None
        True
        """
        from wordreel.search.server_index import index_status

        server = self.index_server()
        return None if server is None else index_status(server, self.store, self.model)

    def leave_index(self, *, drop: bool = False) -> None:
        """Search on this machine from now on.

        Args:
            drop: Delete what the server holds of this library and its model.

        Raises:
            WordreelError: No server searches the library.
        """
        from wordreel.search.server_index import forget_server

        forget_server(self.index_server(), self.store, self.model, drop)
        self._searcher = self._index = None

    def publish(self, address: str, on_progress: ProgressCallback | None = None) -> PublicationReport:
        """Publish the library in PostgreSQL for servers on other machines, or update its publication.

        Args:
            address: `postgresql://USER@HOST/DATABASE`; `?library=NAME` where several are published there.
            on_progress: Called as tracks are sent.

        Returns:
            The generation that is published now, and how many rows and tracks were sent.

        Raises:
            LibraryError: Another library is published under the name.
            IndexServerError: The server cannot be reached, or refuses.
        """
        from wordreel.maintain.publish import publish
        from wordreel.util.server_address import parse_published

        return publish(self.store, parse_published(address), on_progress)

    def follow(self, address: str, on_progress: ProgressCallback | None = None) -> PublicationReport:
        """Bring this replica to what is published, and embed what is new.

        Args:
            address: As in `publish`.
            on_progress: Called as tracks are fetched and clips embedded.

        Returns:
            The generation that the replica has now, and how many rows and tracks were fetched.

        Raises:
            LibraryError: Nothing is published there, or this folder holds a library of its own.
            IndexServerError: The server cannot be reached, or refuses.
        """
        from wordreel.maintain.follow import follow
        from wordreel.util.server_address import parse_published

        report = follow(self.store, parse_published(address), on_progress)
        self._embed_and_index(on_progress)
        self.banks.update()
        return report
