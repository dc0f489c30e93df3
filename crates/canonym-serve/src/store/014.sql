-- What trainings used a document for: `train` or `test`. It never changes once set.
ALTER TABLE documents ADD COLUMN split TEXT;
-- The annotations of a text by people, for the candidates of other mentions of it.
CREATE INDEX marks_by_text ON marks(lower(CASE WHEN json_valid(body) THEN json_extract(body, '$.text') END))
    WHERE source = 'USER' AND state = 'accepted' AND is_deleted = 0;
