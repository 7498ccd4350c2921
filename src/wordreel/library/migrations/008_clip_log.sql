-- Which clips left the catalogue, in order, so that whoever holds a million of them goes on from the number seen
-- last. A content without a file is deleted soon; until then its clips are not to be found.
CREATE TABLE removed_clips (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id     INTEGER NOT NULL
);
CREATE TABLE contents_without_file (content TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO contents_without_file
SELECT content FROM contents c WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.content = c.content);

CREATE TRIGGER clips_removed AFTER DELETE ON clips BEGIN
    INSERT INTO removed_clips (id) VALUES (old.id);
END;
CREATE TRIGGER contents_added AFTER INSERT ON contents BEGIN
    INSERT OR IGNORE INTO contents_without_file VALUES (new.content);
END;
CREATE TRIGGER contents_removed AFTER DELETE ON contents BEGIN
    DELETE FROM contents_without_file WHERE content = old.content;
END;
CREATE TRIGGER files_added AFTER INSERT ON files BEGIN
    DELETE FROM contents_without_file WHERE content = new.content;
END;
CREATE TRIGGER files_removed AFTER DELETE ON files BEGIN
    INSERT OR IGNORE INTO contents_without_file
    SELECT old.content WHERE NOT EXISTS (SELECT 1 FROM files WHERE content = old.content);
END;
CREATE TRIGGER files_changed AFTER UPDATE OF content ON files BEGIN
    DELETE FROM contents_without_file WHERE content = new.content;
    INSERT OR IGNORE INTO contents_without_file
    SELECT old.content WHERE NOT EXISTS (SELECT 1 FROM files WHERE content = old.content);
END;
