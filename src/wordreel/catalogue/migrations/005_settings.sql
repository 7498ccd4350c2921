-- What the owner of a library decided: which model answers searches. Unlike a cache it cannot be made again.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
