-- Providers are tested before they are saved.

-- +goose Up

ALTER TABLE provider_requests DROP CONSTRAINT provider_requests_purpose_check;
ALTER TABLE provider_requests ADD CONSTRAINT provider_requests_purpose_check CHECK (purpose IN ('probe', 'sweep', 'remove', 'leftover', 'verify', 'draft'));
ALTER TABLE provider_requests ADD COLUMN sealed bytea; -- the provider of a draft, secrets included; NULL as soon as it ended
CREATE INDEX provider_requests_open ON provider_requests (created_at) WHERE ended_at IS NULL;
