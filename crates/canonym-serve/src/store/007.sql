-- How often somebody chose a concept.
ALTER TABLE chosen ADD COLUMN n INTEGER NOT NULL DEFAULT 0;
CREATE INDEX chosen_concepts ON chosen(project_id, concept);
