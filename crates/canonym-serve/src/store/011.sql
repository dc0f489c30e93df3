-- Concepts and synonyms that people miss in the terminology; a project uses them at once.
CREATE TABLE proposals (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL REFERENCES projects(id),
    -- `concept` or `synonym`.
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Of a synonym: its concept. Of a new concept: the broader one, if any.
    concept TEXT,
    concept_name TEXT NOT NULL,
    -- `exact`, `narrow`, `broad` or `related`.
    scope TEXT NOT NULL,
    type TEXT NOT NULL,
    definition TEXT NOT NULL,
    -- Where it was proposed, with the text around it.
    document_id INTEGER,
    evidence TEXT NOT NULL,
    person_id INTEGER NOT NULL REFERENCES people(id),
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX proposals_of_project ON proposals(project_id);
