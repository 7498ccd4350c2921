-- When each file was recorded, and where that was read. The metadata of earlier files were not read yet (NULL): until
-- `add` reads them, these have the date of their name or their file time.
ALTER TABLE contents ADD COLUMN recorded TEXT;
ALTER TABLE files ADD COLUMN captured TEXT NOT NULL DEFAULT '';
ALTER TABLE files ADD COLUMN captured_from TEXT NOT NULL DEFAULT '';
UPDATE files SET captured = file_date(path, mtime_ns, 'date'), captured_from = file_date(path, mtime_ns, 'source');
