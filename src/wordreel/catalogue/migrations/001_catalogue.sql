-- The first catalogue. A file is a path; a content is what its bytes are (sha256). Everything that was
-- worked out belongs to the content, so a file that moves or exists twice is never worked out again.
-- Paths are BLOBs: a file name is bytes, and not all of them are UTF-8.

CREATE TABLE contents (
    content     TEXT PRIMARY KEY,
    size        INTEGER NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('video', 'audio', 'image')),
    container   TEXT NOT NULL,
    duration    REAL NOT NULL,
    width       INTEGER NOT NULL,
    height      INTEGER NOT NULL,
    rotation    INTEGER NOT NULL,
    frame_rate  REAL NOT NULL,
    video_codec TEXT NOT NULL,
    audio_codec TEXT NOT NULL,
    sample_rate INTEGER NOT NULL,
    added_at    REAL NOT NULL
) WITHOUT ROWID;

-- Asked for every new file: can this be a file we know, under another name?
CREATE INDEX contents_by_size ON contents (size);

CREATE TABLE files (
    path       BLOB PRIMARY KEY,
    content    TEXT NOT NULL REFERENCES contents (content),
    size       INTEGER NOT NULL,
    mtime_ns   INTEGER NOT NULL,
    ctime_ns   INTEGER NOT NULL,
    inode      INTEGER NOT NULL,
    checked_ns INTEGER NOT NULL,  -- when the file was last looked at: a change in the same instant cannot be seen
    added_at   REAL NOT NULL
) WITHOUT ROWID;

CREATE INDEX files_by_content ON files (content);

-- One row per (content, expert). Absent is a row with a reason, never an empty file.
CREATE TABLE tracks (
    content     TEXT NOT NULL REFERENCES contents (content) ON DELETE CASCADE,
    expert      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('present', 'absent')),
    hash        TEXT,
    reason      TEXT NOT NULL DEFAULT '',
    rows        INTEGER NOT NULL DEFAULT 0,
    dim         INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (content, expert),
    CHECK ((state = 'present') = (hash IS NOT NULL))
) WITHOUT ROWID;

-- Asked before a track file is deleted: does anything else point at it?
CREATE INDEX tracks_by_hash ON tracks (hash) WHERE hash IS NOT NULL;

-- AUTOINCREMENT: a clip id is never used twice. Clips get new ids whenever a track of theirs changes, so an
-- embedding kept under an id can never be an embedding of something else.
CREATE TABLE clips (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    content TEXT NOT NULL REFERENCES contents (content) ON DELETE CASCADE,
    start   REAL NOT NULL,
    end     REAL NOT NULL,
    whole   INTEGER NOT NULL,
    shot    INTEGER NOT NULL DEFAULT -1,
    UNIQUE (content, whole, start, end)
);

CREATE TABLE words (
    id      INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    expert  TEXT NOT NULL,
    start   REAL NOT NULL,
    end     REAL NOT NULL,
    text    TEXT NOT NULL,
    score   REAL NOT NULL,
    FOREIGN KEY (content, expert) REFERENCES tracks (content, expert) ON DELETE CASCADE
);

CREATE INDEX words_by_content ON words (content, expert, start);

-- What could not be added, so that it is not tried again until the file or the experts change.
CREATE TABLE failures (
    path      BLOB PRIMARY KEY,
    size      INTEGER NOT NULL,
    mtime_ns  INTEGER NOT NULL,
    recipe    TEXT NOT NULL,
    reason    TEXT NOT NULL,
    failed_at REAL NOT NULL
) WITHOUT ROWID;
