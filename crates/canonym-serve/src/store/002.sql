-- What is asked of all marks or all events of a project at once, so that nobody has to read them all. All of it follows from events: it is written with
-- each event and made anew with the marks.
ALTER TABLE marks ADD COLUMN kind TEXT NOT NULL DEFAULT '';
-- How sure the model is of the place, and how far its best concept is before the second.
ALTER TABLE marks ADD COLUMN place REAL NOT NULL DEFAULT 0;
ALTER TABLE marks ADD COLUMN margin REAL NOT NULL DEFAULT 0;
-- Whether a model made it, or it came with its document.
ALTER TABLE marks ADD COLUMN was_read INTEGER NOT NULL DEFAULT 0;
DROP INDEX marks_of_document;
CREATE INDEX marks_at_a_glance ON marks(document_id, is_deleted, state, source, place, margin, was_read);
CREATE INDEX documents_in_order ON documents(project_id);
CREATE INDEX documents_by_state ON documents(project_id, is_finished);

-- Marks that are shown.
CREATE TABLE mark_counts (
    project_id INTEGER NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (project_id, source, kind)
) STRICT, WITHOUT ROWID;

-- Decisions of people; days are counted from 1970.
CREATE TABLE decision_counts (
    project_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    kind TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (project_id, day, kind)
) STRICT, WITHOUT ROWID;

-- How long somebody worked on a document, in milliseconds; NULL after one decision.
CREATE TABLE work (
    project_id INTEGER NOT NULL,
    document_id INTEGER NOT NULL,
    person_id INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    spent INTEGER,
    PRIMARY KEY (project_id, document_id, person_id)
) STRICT, WITHOUT ROWID;

-- What somebody said last of a mark: what it means, and where it stands; NULL where it was refused.
CREATE TABLE said (
    mark_id INTEGER NOT NULL,
    person_id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    document_id INTEGER NOT NULL,
    label TEXT NOT NULL,
    spans TEXT,
    -- Whether another said something of it, too.
    is_shared INTEGER NOT NULL,
    PRIMARY KEY (mark_id, person_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX shared_marks ON said(project_id, mark_id) WHERE is_shared;

-- When somebody last chose a concept: the event.
CREATE TABLE chosen (
    project_id INTEGER NOT NULL,
    person_id INTEGER NOT NULL,
    concept TEXT NOT NULL,
    event_id INTEGER NOT NULL,
    PRIMARY KEY (project_id, person_id, concept)
) STRICT, WITHOUT ROWID;
CREATE INDEX last_chosen ON chosen(project_id, person_id, event_id);
