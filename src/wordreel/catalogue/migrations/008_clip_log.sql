-- Which clips left the catalogue, in order, so that whoever holds a million of them goes on from the number seen
-- last. A content without a file is deleted soon; until then its clips are not to be found.
-- Some libraries of version 7 have the log already, created with their first columns; it goes on.
CREATE TABLE IF NOT EXISTS removed_clips (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id     INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS contents_without_file (content TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT OR IGNORE INTO contents_without_file
SELECT content FROM contents c WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.content = c.content);

CREATE TRIGGER IF NOT EXISTS clips_removed AFTER DELETE ON clips BEGIN
    INSERT INTO removed_clips (id) VALUES (old.id);
END;
CREATE TRIGGER IF NOT EXISTS contents_added AFTER INSERT ON contents BEGIN
    INSERT OR IGNORE INTO contents_without_file VALUES (new.content);
END;
CREATE TRIGGER IF NOT EXISTS contents_removed AFTER DELETE ON contents BEGIN
    DELETE FROM contents_without_file WHERE content = old.content;
END;
CREATE TRIGGER IF NOT EXISTS files_added AFTER INSERT ON files BEGIN
    DELETE FROM contents_without_file WHERE content = new.content;
END;
CREATE TRIGGER IF NOT EXISTS files_removed AFTER DELETE ON files BEGIN
    INSERT OR IGNORE INTO contents_without_file
    SELECT old.content WHERE NOT EXISTS (SELECT 1 FROM files WHERE content = old.content);
END;
CREATE TRIGGER IF NOT EXISTS files_changed AFTER UPDATE OF content ON files BEGIN
    DELETE FROM contents_without_file WHERE content = new.content;
    INSERT OR IGNORE INTO contents_without_file
    SELECT old.content WHERE NOT EXISTS (SELECT 1 FROM files WHERE content = old.content);
END;
