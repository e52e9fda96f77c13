package provider

import (
	"context"

	"loom/provisioner/remote"
)

// Dialer gives connections to machines; *remote.Pool is one that keeps them for
// the node's next tasks.
type Dialer interface {
	// Conn returns a connection to the target; release gives it back.
	Conn(ctx context.Context, t remote.Target) (conn *remote.Conn, release func(), err error)
}

// Env is what the process lends to a provider while it carries out a task.
type Env struct {
	// Dialer gives connections. Nil: each use dials and closes its own.
	Dialer Dialer
	// Handshakes keeps the limits of unauthenticated connections. Nil: none shared.
	Handshakes *remote.Dialer
	// Files is "<set>/providertypes/<type>" with the tenant's live resources of
	// the provider, laid out as <resource type>/<name>; it may be empty.
	Files string
}

type envKey struct{}

// WithEnv returns a context that carries the environment of one task. The
// runner calls it around every call of a Provider, so that the interface need
// not name what only some providers and the shared steps use.
func WithEnv(ctx context.Context, env Env) context.Context {
	return context.WithValue(ctx, envKey{}, env)
}

// EnvOf returns the environment of the task that ctx belongs to. Without one, as
// in tests of a single provider, it is usable and shares nothing.
func EnvOf(ctx context.Context) Env {
	env, _ := ctx.Value(envKey{}).(Env)
	if env.Handshakes == nil {
		env.Handshakes = &remote.Dialer{}
	}
	if env.Dialer == nil {
		env.Dialer = ownDialer{env.Handshakes}
	}
	return env
}

// ownDialer dials for each use.
type ownDialer struct{ dialer *remote.Dialer }

func (d ownDialer) Conn(ctx context.Context, t remote.Target) (*remote.Conn, func(), error) {
	conn, err := d.dialer.Dial(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	return conn, func() { _ = conn.Close() }, nil
}
