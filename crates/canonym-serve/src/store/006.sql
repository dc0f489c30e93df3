-- Decisions made together across documents share a batch.
CREATE INDEX events_of_batch ON events(batch);
