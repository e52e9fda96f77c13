-- Providers are asked whether they have one size or image.

-- +goose Up

ALTER TABLE provider_requests DROP CONSTRAINT provider_requests_purpose_check;
ALTER TABLE provider_requests ADD CONSTRAINT provider_requests_purpose_check CHECK (purpose IN ('probe', 'sweep', 'remove', 'leftover', 'verify'));
ALTER TABLE provider_requests ADD COLUMN offer_kind text NOT NULL DEFAULT ''; -- flavor or image, of a verification
ALTER TABLE provider_requests ADD COLUMN offer_id text NOT NULL DEFAULT ''; -- the provider's own, of a verification
