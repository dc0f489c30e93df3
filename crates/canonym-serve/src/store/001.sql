CREATE TABLE people (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    password TEXT,
    made_at INTEGER NOT NULL
) STRICT;

-- Logins and tokens: only the hash of what the client holds is kept.
CREATE TABLE keys (
    hash TEXT PRIMARY KEY,
    person_id INTEGER NOT NULL REFERENCES people(id),
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    expires_at INTEGER,
    made_at INTEGER NOT NULL
) STRICT;

CREATE TABLE projects (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    guideline TEXT NOT NULL,
    strategy TEXT NOT NULL,
    kb_fingerprint TEXT NOT NULL,
    model_id INTEGER,
    made_at INTEGER NOT NULL
) STRICT;

CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL REFERENCES projects(id),
    external_id TEXT NOT NULL,
    text TEXT NOT NULL,
    -- Sections, relations, attributes and what only the format of the source can hold.
    beside TEXT NOT NULL,
    is_finished INTEGER NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (project_id, external_id)
) STRICT;

-- What happened. Everything that the tables `marks` and `documents.is_finished` say follows from these rows.
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents(id),
    -- The first event of those that were made together.
    batch INTEGER NOT NULL,
    person_id INTEGER REFERENCES people(id),
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    model TEXT,
    client_id TEXT,
    job_id INTEGER,
    -- The batch that an undo takes back, or a redo brings back.
    undoes INTEGER,
    changes TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_document ON events(document_id, id);
CREATE INDEX events_of_job ON events(job_id);

CREATE TABLE marks (
    id INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL REFERENCES documents(id),
    source TEXT NOT NULL,
    state TEXT NOT NULL,
    is_deleted INTEGER NOT NULL,
    -- The last event that changed it.
    event_id INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX marks_of_document ON marks(document_id);

-- Answers to requests that carried an id of the client: the same id twice is one request.
CREATE TABLE answers (
    person_id INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    document_id INTEGER NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (person_id, client_id)
) STRICT;

CREATE TABLE comments (
    id INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL REFERENCES documents(id),
    mark_id INTEGER,
    person_id INTEGER NOT NULL REFERENCES people(id),
    at INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL REFERENCES projects(id),
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    progress REAL NOT NULL,
    message TEXT NOT NULL,
    error TEXT,
    made_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    settings TEXT NOT NULL,
    curve TEXT NOT NULL,
    model_id INTEGER
) STRICT;

CREATE TABLE models (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    project_id INTEGER REFERENCES projects(id),
    parent_id INTEGER,
    -- NULL: the model that the server was started with.
    folder TEXT,
    card TEXT NOT NULL,
    dev TEXT,
    made_at INTEGER NOT NULL
) STRICT;

-- The next number of what is numbered across rows that may vanish.
CREATE TABLE counters (name TEXT PRIMARY KEY, next INTEGER NOT NULL) STRICT;
INSERT INTO counters VALUES ('mark', 1);
