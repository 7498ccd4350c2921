"""Tracks of faces for tests, as the faces expert would write them."""

import numpy as np
from tests.people.test_face_groups import faces_of, unit

from wordreel.people.face_groups import face_mean
from wordreel.types import Track

LOOKS = unit(faces_of(3, 8, 0.5)[0] + face_mean())  # eight looks at each of three people


def put_faces(store, path, *seen, version=1):
    """Let a file show people, as (person, look, start): each for four seconds."""
    rows = [LOOKS[8 * person + look] for person, look, _ in seen for _ in range(4)]
    times = [(start + second, start + second + 1.0) for _, _, start in seen for second in range(4)]
    order = np.argsort([start for start, _ in times], kind="stable")
    track = Track(np.stack(rows)[order], np.array(times, np.float64)[order])
    staged = store.track_files.stage(track)
    store.track_files.commit(staged)
    content = store.file(path).content
    store.catalogue.run(
        "INSERT OR REPLACE INTO tracks VALUES (?, 'faces', ?, 'present', ?, '', ?, ?)",
        content,
        f"test {version}",
        staged.hash,
        len(track),
        track.dim,
    )
    return content
