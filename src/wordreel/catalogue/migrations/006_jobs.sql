-- Long work that was asked for over HTTP: what is unfinished when the server stops is taken up again when it starts.
CREATE TABLE jobs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL,  -- add, embed, bank, check
    title      TEXT NOT NULL,  -- for people
    request    TEXT NOT NULL,  -- JSON: all that is needed to do it again
    state      TEXT NOT NULL,  -- queued, running, done, failed, cancelled
    progress   TEXT,           -- JSON
    report     TEXT,           -- JSON
    error      TEXT,
    made_at    REAL NOT NULL,
    started_at REAL,
    ended_at   REAL
);

-- Files that came by upload lie in `uploads/` under the hash of their bytes; this is what they were called.
CREATE TABLE uploads (
    content TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    made_at REAL NOT NULL
) WITHOUT ROWID;
