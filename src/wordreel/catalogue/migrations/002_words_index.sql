-- Finding words by scanning the table takes seconds on a large library. This index holds no text of its own
-- (content = 'words'); the triggers keep it in step, also when words disappear because their video does.
-- Porter stemming lets "dog" find "dogs"; diacritics are dropped so that "cafe" finds "café".

CREATE VIRTUAL TABLE words_fts USING fts5 (
    text, content = 'words', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);

INSERT INTO words_fts (words_fts) VALUES ('rebuild');

CREATE TRIGGER words_added AFTER INSERT ON words BEGIN
    INSERT INTO words_fts (rowid, text) VALUES (new.id, new.text);
END;

CREATE TRIGGER words_removed AFTER DELETE ON words BEGIN
    INSERT INTO words_fts (words_fts, rowid, text) VALUES ('delete', old.id, old.text);
END;

CREATE TRIGGER words_changed AFTER UPDATE ON words BEGIN
    INSERT INTO words_fts (words_fts, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO words_fts (rowid, text) VALUES (new.id, new.text);
END;
