package cloud

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// How long one call may take, its answer included: one that only asks, one that
// changes something, and one for somebody who waits for a probe.
const (
	askLimit    = 30 * time.Second
	changeLimit = 2 * time.Minute
	briefLimit  = 10 * time.Second
)

// connectLimit is how long one connection may take to be made, and encrypted, for somebody who
// waits for a probe: two tries take less than that waits for.
const connectLimit = 4 * time.Second

// transports keeps the connections of all providers, for a session is too short to
// keep its own: one transport for each way of reaching addresses, so that nobody
// calls over a connection that only others may open.
var transports = transportPool{of: map[transportKey]*keptTransport{}}

type transportPool struct {
	mu sync.Mutex
	of map[transportKey]*keptTransport
}

type keptTransport struct {
	http.RoundTripper
	used time.Time
	end  func()
}

// transportIdle is how long a transport is kept without being asked for.
const transportIdle = 10 * time.Minute

type transportKey struct {
	verify           bool
	reach, authority string
}

func transport(verify bool, reach loom.Reach, authority string) http.RoundTripper {
	transports.mu.Lock()
	defer transports.mu.Unlock()
	key, now := transportKey{verify, reach.Key(), authority}, time.Now()
	kept := transports.of[key]
	if kept == nil {
		for other, old := range transports.of {
			if now.Sub(old.used) > transportIdle {
				old.end()
				delete(transports.of, other)
			}
		}
		kept = newTransport(verify, reach, authority, false)
		transports.of[key] = kept
	}
	kept.used = now
	return kept
}

func newTransport(verify bool, reach loom.Reach, authority string, brief bool) *keptTransport {
	trusted, err := trust(authority)
	if err != nil {
		return &keptTransport{RoundTripper: untrusting{err}, end: func() {}}
	}
	made := func(d net.Dialer) *http.Transport {
		d.Timeout, d.KeepAlive = 10*time.Second, 30*time.Second
		t := &http.Transport{
			DialContext: d.DialContext,
			// A peer that resolves and accepts but never shakes hands must not take the whole limit.
			TLSHandshakeTimeout: 15 * time.Second, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 60 * time.Second,
		}
		if brief {
			d.Timeout, t.TLSHandshakeTimeout, t.IdleConnTimeout = connectLimit, connectLimit, connectLimit
		}
		t.TLSClientConfig = &tls.Config{RootCAs: trusted, InsecureSkipVerify: !verify} //nolint:gosec // the provider's own field says so
		return t
	}
	direct, proxied := made(net.Dialer{ControlContext: reach.Control}), made(net.Dialer{})
	proxied.Proxy = http.ProxyFromEnvironment
	guard := guarded{reach: reach, direct: direct, proxied: proxied, proxy: http.ProxyFromEnvironment}
	return &keptTransport{RoundTripper: bounded{timed{guard}, longAnswers}, end: func() {
		direct.CloseIdleConnections()
		proxied.CloseIdleConnections()
	}}
}

// trust returns the authorities of this host and those of a text in PEM form; nil for
// those of this host alone.
func trust(authority string) (*x509.CertPool, error) {
	if authority == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(authority)) {
		return nil, Errorf(Refused, "provider field %s holds no certificate; give the certificate of the authority in PEM form, beginning with -----BEGIN CERTIFICATE-----", provider.CAField)
	}
	return pool, nil
}

// untrusting makes no call: it is not known whom to trust.
type untrusting struct{ error }

// RoundTrip says why.
func (u untrusting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, u.error
}

// timed bounds how long a call takes, its answer included.
type timed struct{ http.RoundTripper }

type briefKey struct{}

// late is the trouble of a call that took too long.
type late time.Duration

// Error says how long was waited.
func (l late) Error() string {
	return fmt.Sprintf("no answer within %d s", int(time.Duration(l).Seconds()))
}

// RoundTrip makes a call.
func (t timed) RoundTrip(r *http.Request) (*http.Response, error) {
	limit := askLimit
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		limit = changeLimit
	}
	if r.Context().Value(briefKey{}) != nil {
		limit = briefLimit
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, late(limit))
	response, err := t.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		err = lateOr(ctx, err)
		cancel()
		return nil, err
	}
	response.Body = timedBody{response.Body, ctx, cancel}
	return response, nil
}

// lateOr says of the error of a call that its time ran out, if it did.
func lateOr(ctx context.Context, err error) error {
	var l late
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &l) {
		return l
	}
	return err
}

type timedBody struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // it is that of the one call this is the answer of
	cancel func()
}

// Read reads on until the time of the call ends.
func (b timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = lateOr(b.ctx, err)
	}
	return n, err
}

// Close ends the call.
func (b timedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// guarded calls what the reach allows. Where the operator's environment names a proxy
// that is what Loom connects to, and it is the proxy that keeps names from leading
// where they should not; Loom asks it for nothing that the reach refuses as far as it
// can tell beforehand (docs/decisions/0055-what-loom-dials.md).
type guarded struct {
	reach           loom.Reach
	direct, proxied http.RoundTripper
	proxy           func(*http.Request) (*url.URL, error)
}

// RoundTrip makes a call. A refused address is an *Error of kind Refused.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	by, proxied := g.direct, false
	if proxy, err := g.proxy(r); err != nil || proxy != nil {
		if err := g.reach.CheckHost(r.Context(), r.URL.Hostname()); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, refusal(r, err)
		}
		by, proxied = g.proxied, true
	}
	response, err := by.RoundTrip(traced(r, proxied))
	if err != nil {
		return nil, unreachable(r, refusal(r, err))
	}
	heard.from(r.URL.Host)
	return response, nil
}

func refusal(r *http.Request, err error) error {
	var refused *loom.RefusedAddress
	if !errors.As(err, &refused) {
		return err
	}
	return &Error{Kind: Refused, Before: true, Err: err, Step: StepConnect, Message: fmt.Sprintf("the API at %s is not called: %s", r.URL.Host, refused.Tell(r.Context(), r.URL.Hostname()))}
}

// authority is what the provider's own field says of whom to trust.
func (s *Session) authority() string { return s.Fields.Text(provider.CAField) }

// Client makes calls to what the session may reach, through the proxy that the
// environment names (HTTPS_PROXY, NO_PROXY). It follows no redirects, which would carry
// credentials elsewhere. verify false takes any certificate: only where a field of the
// provider says so; another one names authorities besides those of this host.
func (s *Session) Client(verify bool) *http.Client {
	calls := http.RoundTripper(nil)
	if s.brief { // its steps are those of a connection of its own
		calls = newTransport(verify, s.Reach, s.authority(), true)
	} else {
		calls = transport(verify, s.Reach, s.authority())
	}
	return &http.Client{Transport: calls,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// WithHeader is a client that adds a header to every call, such as one for tokens.
func WithHeader(c *http.Client, name, value string) *http.Client {
	with := *c
	with.Transport = headed{c.Transport, name, value}
	return &with
}

type headed struct {
	http.RoundTripper
	name, value string
}

// RoundTrip adds the header to a copy, as its contract asks for.
func (h headed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return h.RoundTripper.RoundTrip(r)
}

// Endpoint returns the provider's own API address (the field endpoint_url), or usual
// where the field is empty. An address that is none, or not HTTPS, is an error of
// kind Refused that says what to do.
func (s *Session) Endpoint(fields Fields, usual string) (string, error) {
	text := fields.Text(provider.EndpointField)
	if text == "" {
		return usual, nil
	}
	return s.CheckURL(provider.EndpointField, text)
}

// CheckURL checks the address of an API in a field of the provider.
func (s *Session) CheckURL(field, text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", Errorf(Refused, "provider field %s is no address of an API; give a URL such as https://cloud.example", field)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", Errorf(Refused, "provider field %s has more than host and path; take out user, question mark and what follows", field)
	case u.Scheme == "http" && !s.Insecure:
		return "", Errorf(Refused, "provider field %s is http://%s, which is not encrypted; use HTTPS, or start Loom with LOOM_ALLOW_INSECURE_ENDPOINTS=true", field, u.Host)
	}
	// Names are looked at when they are called.
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		if err := s.Reach.Check(addr); err != nil {
			return "", Errorf(Refused, "provider field %s is refused: %s", field, err)
		}
	}
	return u.String(), nil
}
