-- +goose Up
-- Clusters are made of and changed to released versions alone. A version can carry a message
-- to the owners of clusters that are on it.
ALTER TABLE catalog_versions
    ADD COLUMN released boolean NOT NULL DEFAULT true,
    ADD COLUMN deprecation text NOT NULL DEFAULT '' CHECK (length(deprecation) <= 500);
