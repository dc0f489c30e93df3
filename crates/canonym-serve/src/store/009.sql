-- Comments are threads: the first comment of one, and who resolved it.
ALTER TABLE comments ADD COLUMN parent_id INTEGER;
ALTER TABLE comments ADD COLUMN resolved_by INTEGER;
CREATE INDEX comments_of_document ON comments(document_id, parent_id, resolved_by);
-- Archived projects are kept, out of the way.
ALTER TABLE projects ADD COLUMN is_archived INTEGER NOT NULL DEFAULT 0;
