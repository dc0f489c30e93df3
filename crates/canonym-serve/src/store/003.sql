-- Who left cannot log in any more; what they did stays theirs.
ALTER TABLE people ADD COLUMN is_active INTEGER NOT NULL DEFAULT 1;

-- Where a concept is mentioned.
CREATE INDEX marks_of_concept ON marks(json_extract(body, '$.concept.id'));

-- How long somebody worked on a document until they finished it, as their browser measured it.
CREATE TABLE times (
    event_id INTEGER PRIMARY KEY REFERENCES events(id),
    document_id INTEGER NOT NULL REFERENCES documents(id),
    person_id INTEGER NOT NULL REFERENCES people(id),
    at INTEGER NOT NULL,
    seconds REAL NOT NULL
) STRICT;
CREATE INDEX times_of_document ON times(document_id);
