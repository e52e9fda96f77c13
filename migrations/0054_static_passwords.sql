-- Nodes of static providers hold no copy of the provider's password: it opens all of its machines.

-- +goose Up

DELETE FROM secrets s USING nodes n JOIN clusters c ON c.id = n.cluster_id
WHERE loom_provider(c.tenant_id, c.provider_name, '{}')->>'providertype' = 'static' AND s.tenant_id = n.tenant_id AND s.entity = 'node:' || n.id::text AND s.field = 'ssh-auth';

-- Before facts were sealed.
UPDATE nodes n SET results = n.results #- '{ssh-auth,password}' FROM clusters c
WHERE c.id = n.cluster_id AND loom_provider(c.tenant_id, c.provider_name, '{}')->>'providertype' = 'static' AND n.results->'ssh-auth' ? 'password';
