-- The types and branches of the terminology that a project annotates, as JSON; empty lists for all of it.
ALTER TABLE projects ADD COLUMN scope TEXT NOT NULL DEFAULT '{"types":[],"branches":[]}';
