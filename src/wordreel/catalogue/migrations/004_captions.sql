-- What people wrote about an item, brought by `wordreel import`: queries whose right answer is known, for
-- measuring and for banks. They belong to the content; one split of a dataset is one set of them, so an item
-- that is in two splits has the captions of both.
CREATE TABLE captions (
    id      INTEGER PRIMARY KEY,  -- in the order of the dataset
    content TEXT NOT NULL REFERENCES contents (content) ON DELETE CASCADE,
    dataset TEXT NOT NULL,
    split   TEXT NOT NULL,
    text    TEXT NOT NULL,
    start   REAL,                 -- seconds; NULL where the caption is about the whole
    end     REAL
);

CREATE INDEX captions_by_content ON captions (content, dataset, split);
CREATE INDEX captions_by_split ON captions (split);
