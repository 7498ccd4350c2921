-- Files are added in two passes: a quick look at key frames, so that everything can be found soon, then the thorough
-- pass over all of it. These contents have had the quick look only; every other one has had the thorough pass.
CREATE TABLE quick_contents (
    content TEXT PRIMARY KEY REFERENCES contents (content) ON DELETE CASCADE
) WITHOUT ROWID;

-- Which of them a search returned, and when: the thorough pass takes those first.
CREATE TABLE returned_contents (
    content     TEXT PRIMARY KEY REFERENCES quick_contents (content) ON DELETE CASCADE,
    returned_at REAL NOT NULL
) WITHOUT ROWID;
