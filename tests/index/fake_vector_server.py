"""A vector server in memory that does everything the slow way, can be killed and can lose its data."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from wordreel.errors import IndexServerError
from wordreel.index.vector_server import SLOTS, ServerRows, pattern_code


class FakeServer:
    name, exact, max_k = "fake", True, 1_000

    def __init__(self):
        self.table, self.marker = {}, None
        self.calls, self.dies_at = [], None

    def prepare(self):
        self._called("prepare")

    def lock(self):
        return nullcontext()

    def read_marker(self):
        return self.marker

    def write_marker(self, marker):
        self._called("marker")
        self.marker = marker

    def rows(self):
        clips = sorted(self.table)
        return ServerRows(
            np.array(clips, np.int64),
            np.array([self.table[clip][1] for clip in clips], np.int64),
            np.array([self.table[clip][2] for clip in clips], np.float32).reshape(-1, SLOTS),
        )

    def begin(self, rows):
        pass

    def put(self, rows):
        self._called("put", len(rows.clips))
        for at, clip in enumerate(rows.clips.tolist()):
            self.table[clip] = (
                pattern_code(rows.pattern),
                int(rows.digests[at]),
                rows.biases[at].copy(),
                rows.extended()[at],
            )

    def delete(self, clips):
        self._called("delete", len(clips))
        for clip in clips.tolist():
            del self.table[clip]

    def finish(self):
        self._called("finish")

    def search(self, groups):
        if self.marker is None:
            return [], None
        return [self._search(group) for group in groups], self.marker

    def _search(self, group):
        code = pattern_code(group.pattern)
        inside = [
            clip
            for clip, row in self.table.items()
            if row[0] == code and any(low <= clip <= high for low, high in group.ranges)
        ]
        scored = sorted((-float(self.table[clip][3] @ group.query), clip) for clip in inside)[: group.k]
        return np.array([clip for _, clip in scored], np.int64)

    def describe(self):
        return "fake"

    def drop(self):
        self.table, self.marker = {}, None

    def close(self):
        pass

    def written(self):
        """How many rows were put since the last call."""
        count = sum(size for what, size in self.calls if what == "put")
        self.calls = []
        return count

    def _called(self, what, size=0):
        if self.dies_at is not None:
            self.dies_at -= 1
            if self.dies_at < 0:
                raise IndexServerError("the server was killed")
        self.calls.append((what, size))
