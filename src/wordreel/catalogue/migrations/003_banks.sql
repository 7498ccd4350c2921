-- Query banks are kept as what they are: sentences. Embeddings and fitted numbers are caches of them.
CREATE TABLE banks (
    name    TEXT PRIMARY KEY,
    source  TEXT NOT NULL,  -- where the first queries came from, in words
    made_at REAL NOT NULL
) WITHOUT ROWID;

-- AUTOINCREMENT: an id is never used twice, so an embedding kept under it is never another query's.
CREATE TABLE bank_queries (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    bank   TEXT NOT NULL REFERENCES banks (name) ON DELETE CASCADE,
    text   TEXT NOT NULL,
    source TEXT NOT NULL,
    UNIQUE (bank, text)
);

-- The last check of a bank with a model. `revision` names the queries it was made with: a bank that changed
-- since counts as unchecked.
CREATE TABLE bank_checks (
    bank        TEXT NOT NULL REFERENCES banks (name) ON DELETE CASCADE,
    fingerprint TEXT NOT NULL,
    revision    TEXT NOT NULL,
    passed      INTEGER NOT NULL,
    report      TEXT NOT NULL,  -- JSON
    checked_at  REAL NOT NULL,
    PRIMARY KEY (bank, fingerprint)
) WITHOUT ROWID;
