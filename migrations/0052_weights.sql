-- What catalogs take in memory.

-- +goose Up

-- The bytes of the JSON and so much more for each value. Of versions that are there only
-- the bytes are counted; they get their weight when they are stored again.
ALTER TABLE catalog_versions ADD COLUMN weight bigint NOT NULL DEFAULT 0;
UPDATE catalog_versions SET weight = octet_length(body::text);
