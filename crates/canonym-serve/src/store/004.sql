-- Who works in a project. Admins see all projects without being in them.
CREATE TABLE members (
    project_id INTEGER NOT NULL REFERENCES projects(id),
    person_id INTEGER NOT NULL REFERENCES people(id),
    PRIMARY KEY (project_id, person_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX projects_of_person ON members(person_id);
-- Until now everybody saw every project.
INSERT INTO members SELECT projects.id, people.id FROM projects CROSS JOIN people WHERE people.password IS NOT NULL;
