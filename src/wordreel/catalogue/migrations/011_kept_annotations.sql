-- What the owner typed survives the removal of its video: it waits here and returns when the same content is added.
CREATE TABLE kept_annotations (
    content TEXT NOT NULL,
    start   REAL NOT NULL,
    end     REAL NOT NULL,
    kind    TEXT NOT NULL,
    text    TEXT NOT NULL,
    key     TEXT NOT NULL,
    made_at REAL NOT NULL,
    PRIMARY KEY (content, kind, key, start, end)
) WITHOUT ROWID;

CREATE TRIGGER annotations_kept BEFORE DELETE ON contents BEGIN
    INSERT OR REPLACE INTO kept_annotations
        SELECT content, start, end, kind, text, key, made_at FROM annotations WHERE content = old.content;
END;

CREATE TRIGGER annotations_returned AFTER INSERT ON contents BEGIN
    INSERT OR IGNORE INTO annotations (content, start, end, kind, text, key, made_at)
        SELECT content, start, end, kind, text, key, made_at FROM kept_annotations WHERE content = new.content;
    DELETE FROM kept_annotations WHERE content = new.content;
END;

-- Looks at people that were stored as lasting longer than their video.
UPDATE person_faces SET end = (SELECT c.duration FROM contents c WHERE c.content = person_faces.content)
    WHERE end > (SELECT c.duration FROM contents c WHERE c.content = person_faces.content AND c.duration > 0);
