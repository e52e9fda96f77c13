package execution_test

import "testing"

// What is over goes, and with it what was only kept for a while.
func TestSessionsArePurged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.exec(`INSERT INTO sessions (id, tenant_id, user_id, expires_at) VALUES ('over', 't1', 'ana', now() - interval '1 s'), ('open', 't1', 'ana', now() + interval '1 hour')`)
	w.exec(`INSERT INTO sign_in_failures (subject, last_at) VALUES ('old', now() - interval '25 hours'), ('new', now() - interval '23 hours')`)
	w.exec(`INSERT INTO idempotency_keys (tenant_id, user_id, key, path, body_hash, created_at)
		VALUES ('t1', 'ana', 'old', '/', '', now() - interval '25 hours'), ('t1', 'ana', 'new', '/', '', now() - interval '23 hours')`)
	w.exec(`INSERT INTO tokens (tenant_id, user_id, name, prefix, hash, scopes) VALUES ('t1', 'ana', 'n', 'p', 'h', '{}')`)
	w.exec(`INSERT INTO token_old_secrets (hash, tenant_id, token_id, ends_at) SELECT x.hash::bytea, 't1', t.id, now() + x.ends FROM tokens t,
		(VALUES ('old', interval '-1 s'), ('new', interval '1 hour')) AS x (hash, ends)`)
	w.exec(`INSERT INTO secrets (tenant_id, entity, field, sealed, updated_at) VALUES ('t1', 'draft:3:ana:old', 'f', '', now() - interval '8 days'),
		('t1', 'draft:3:ana:new', 'f', '', now() - interval '6 days'), ('t1', 'import:ana', 'f', '', now() - interval '61 minutes'),
		('t1', 'import:ben', 'f', '', now() - interval '59 minutes'), ('t1', 'provider:lab', 'f', '', now() - interval '1 year')`)
	for range 2 {
		if err := w.ops.PurgeSessions(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.expect("open", `SELECT string_agg(encode(id, 'escape'), ' ') FROM sessions`)
	w.expect("new", `SELECT string_agg(subject, ' ') FROM sign_in_failures`)
	w.expect("new", `SELECT string_agg(key, ' ') FROM idempotency_keys`)
	w.expect("new", `SELECT string_agg(encode(hash, 'escape'), ' ') FROM token_old_secrets`)
	w.expect("draft:3:ana:new import:ben provider:lab", `SELECT string_agg(entity, ' ' ORDER BY entity) FROM secrets`)
}

// The owner of a token hears once that it ends soon: of one that was to live for longer,
// that is still good, and again when it has another end.
func TestTokensThatEndAreToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.exec(`INSERT INTO tokens (tenant_id, user_id, name, prefix, hash, scopes, created_at, expires_at, revoked_at) VALUES
		('t1', 'ana', 'soon', 'p', 'a', '{}', now() - interval '30 days', now() + interval '6 days', NULL),
		('t1', 'ana', 'late', 'p', 'b', '{}', now() - interval '30 days', now() + interval '8 days', NULL),
		('t1', 'ana', 'short', 'p', 'c', '{}', now(), now() + interval '2 days', NULL),
		('t1', 'ana', 'over', 'p', 'd', '{}', now() - interval '30 days', now() - interval '1 s', NULL),
		('t1', 'ana', 'revoked', 'p', 'e', '{}', now() - interval '30 days', now() + interval '2 days', now()),
		('t1', 'ana', 'for ever', 'p', 'f', '{}', now() - interval '30 days', NULL, NULL)`)
	told := `SELECT string_agg(t.name, ' ' ORDER BY e.id) FROM events e JOIN tokens t ON e.ids = ARRAY['token/' || t.id] WHERE e.tenant_id = 't1' AND e.topic = 'user:ana'`
	for range 2 {
		if err := w.ops.PurgeSessions(ctx); err != nil {
			t.Fatal(err)
		}
		w.expect("soon", told)
	}
	w.exec(`UPDATE tokens SET expires_at = now() + interval '5 days' WHERE name = 'soon'`)
	if err := w.ops.PurgeSessions(ctx); err != nil {
		t.Fatal(err)
	}
	w.expect("soon soon", told)
}

// Events go an hour after they were, but for those that somebody could not see yet when
// they were trimmed the time before.
func TestEventsAreTrimmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.exec(`INSERT INTO events (tenant_id, topic, xid, created_at) VALUES ('t1', 'old', '3', now() - interval '61 minutes'), ('t1', 'new', '3', now() - interval '59 minutes')`)
	for range 2 { // the first call notes up to where all was to be seen
		if err := w.ops.TrimEvents(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.expect("new", `SELECT string_agg(topic, ' ') FROM events WHERE topic IN ('old', 'new')`)
}
