-- Checksums of what is written once, which `doctor` compares. They are filled in when a database is migrated.
ALTER TABLE documents ADD COLUMN text_checksum INTEGER;
ALTER TABLE events ADD COLUMN changes_checksum INTEGER;
