-- A prediction without a mention probability has none, in place of its score or 0. Rows follow from events and are made anew.
DROP INDEX marks_at_a_glance;
ALTER TABLE marks DROP COLUMN p_mention;
ALTER TABLE marks ADD COLUMN p_mention REAL;
CREATE INDEX marks_at_a_glance ON marks(document_id, is_deleted, state, source, p_mention, margin, was_read);
