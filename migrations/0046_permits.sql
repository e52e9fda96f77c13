-- What the superadmin lets a tenant do with providers.

-- +goose Up

-- Tenants that are there keep what they could do; one that a program makes without
-- saying anything gets what the form of a new tenant begins with.
ALTER TABLE tenants
    ADD COLUMN private_networks boolean NOT NULL DEFAULT true, -- providers and machines in private networks are reached
    ADD COLUMN instance_roles boolean NOT NULL DEFAULT true, -- providers may use the role of the provisioner's host
    ADD COLUMN provider_types_off text[] NOT NULL DEFAULT '{}'; -- types that nothing new is made with
ALTER TABLE tenants
    ALTER COLUMN private_networks SET DEFAULT false,
    ALTER COLUMN instance_roles SET DEFAULT false,
    ALTER COLUMN provider_types_off SET DEFAULT '{static}';
