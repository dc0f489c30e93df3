-- Blind annotation: each annotator works on copies of documents, in a project of their own below the one that holds the originals.
ALTER TABLE projects ADD COLUMN parent_id INTEGER;
ALTER TABLE projects ADD COLUMN annotator_id INTEGER;
CREATE TABLE assignments (
    document_id INTEGER NOT NULL REFERENCES documents(id),
    person_id INTEGER NOT NULL REFERENCES people(id),
    copy_id INTEGER NOT NULL REFERENCES documents(id),
    -- Whether the answers of all annotators were taken over into the original.
    is_collected INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (document_id, person_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX assignment_of_copy ON assignments(copy_id);
