-- What somebody began with a credential that ended since is not finished.

-- +goose Up

CREATE SEQUENCE access_epochs;
-- Another number each time the sessions or tokens of the user end; never the same again,
-- also for a later user of the same id.
ALTER TABLE users ADD COLUMN access_epoch bigint NOT NULL DEFAULT nextval('access_epochs');
