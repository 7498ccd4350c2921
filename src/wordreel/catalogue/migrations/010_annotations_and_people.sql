-- What the owner says about moments: tags and notes. They hang on a content and a span of seconds, not on clips,
-- which get new ids whenever the thorough pass cuts a video again. `key` is what tags are compared by.
CREATE TABLE annotations (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    content TEXT NOT NULL REFERENCES contents (content) ON DELETE CASCADE,
    start   REAL NOT NULL,
    end     REAL NOT NULL,
    kind    TEXT NOT NULL CHECK (kind IN ('tag', 'note')),
    text    TEXT NOT NULL,
    key     TEXT NOT NULL,
    made_at REAL NOT NULL,
    UNIQUE (content, kind, key, start, end)
);

CREATE INDEX annotations_by_key ON annotations (kind, key, content);

CREATE VIRTUAL TABLE annotations_fts USING fts5 (
    text, content = 'annotations', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER annotations_added AFTER INSERT ON annotations BEGIN
    INSERT INTO annotations_fts (rowid, text) VALUES (new.id, new.text);
END;

CREATE TRIGGER annotations_removed AFTER DELETE ON annotations BEGIN
    INSERT INTO annotations_fts (annotations_fts, rowid, text) VALUES ('delete', old.id, old.text);
END;

CREATE TRIGGER annotations_changed AFTER UPDATE ON annotations BEGIN
    INSERT INTO annotations_fts (annotations_fts, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO annotations_fts (rowid, text) VALUES (new.id, new.text);
END;

-- A query with its filters under a name: what it finds changes with the library.
CREATE TABLE saved_searches (
    name    TEXT PRIMARY KEY,
    query   TEXT NOT NULL,  -- JSON
    made_at REAL NOT NULL
) WITHOUT ROWID;

-- The same person over the library, only where the owner turned it on. A person without a name is a group of faces
-- that look alike. `edited` ones were named, merged or split by the owner: grouping never merges two of them.
CREATE TABLE people (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    name    TEXT NOT NULL DEFAULT '',
    key     TEXT NOT NULL DEFAULT '',  -- what names are compared by
    edited  INTEGER NOT NULL DEFAULT 0,
    made_at REAL NOT NULL
);

CREATE UNIQUE INDEX people_by_key ON people (key) WHERE key != '';

-- One face over consecutive seconds of one content: the mean of its vectors, float32, and how many there were.
CREATE TABLE person_faces (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    content TEXT NOT NULL REFERENCES contents (content) ON DELETE CASCADE,
    person  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    start   REAL NOT NULL,
    end     REAL NOT NULL,
    rows    INTEGER NOT NULL,
    vector  BLOB NOT NULL
);

CREATE INDEX person_faces_by_person ON person_faces (person, content, start);
CREATE INDEX person_faces_by_content ON person_faces (content);

-- The faces track from which a content was grouped: another track is grouped anew.
CREATE TABLE grouped_contents (
    content TEXT PRIMARY KEY REFERENCES contents (content) ON DELETE CASCADE,
    hash    TEXT NOT NULL
) WITHOUT ROWID;
