package cloud

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// callLimit is how long one call may take, its answer included.
const callLimit = 30 * time.Second

// transports keeps the connections of all providers, for a session is too short to
// keep its own: one transport for each way of reaching addresses, so that nobody
// calls over a connection that only others may open.
var transports sync.Map // transportKey to http.RoundTripper

type transportKey struct {
	verify bool
	reach  string
}

func transport(verify bool, reach loom.Reach) http.RoundTripper {
	key := transportKey{verify, reach.Key()}
	if kept, ok := transports.Load(key); ok {
		return kept.(http.RoundTripper)
	}
	made := func(d net.Dialer) *http.Transport {
		d.Timeout, d.KeepAlive = 10*time.Second, 30*time.Second
		t := &http.Transport{
			DialContext: d.DialContext,
			// A peer that resolves and accepts but never shakes hands must not take the whole limit.
			TLSHandshakeTimeout: 15 * time.Second, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 60 * time.Second,
		}
		if !verify {
			t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the provider's own field says so
		}
		return t
	}
	direct, proxied := made(net.Dialer{ControlContext: reach.Control}), made(net.Dialer{})
	proxied.Proxy = http.ProxyFromEnvironment
	kept, _ := transports.LoadOrStore(key, bounded{guarded{reach: reach, direct: direct, proxied: proxied, proxy: http.ProxyFromEnvironment}, longAnswers})
	return kept.(http.RoundTripper)
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
	by := g.direct
	if proxy, err := g.proxy(r); err != nil || proxy != nil {
		if err := g.reach.CheckHost(r.Context(), r.URL.Hostname()); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, refusal(r, err)
		}
		by = g.proxied
	}
	response, err := by.RoundTrip(r)
	if err != nil {
		return nil, refusal(r, err)
	}
	return response, nil
}

func refusal(r *http.Request, err error) error {
	var refused *loom.RefusedAddress
	if !errors.As(err, &refused) {
		return err
	}
	return &Error{Kind: Refused, Before: true, Err: err, Message: fmt.Sprintf("the API at %s is not called: %s", r.URL.Host, refused.Tell(r.Context(), r.URL.Hostname()))}
}

// Client makes calls of 30 s at most, to what the session may reach, through the proxy
// that the environment names (HTTPS_PROXY, NO_PROXY). It follows no redirects, which
// would carry credentials elsewhere. verify false takes any certificate: only where a
// field of the provider says so.
func (s *Session) Client(verify bool) *http.Client {
	return &http.Client{Transport: transport(verify, s.Reach), Timeout: callLimit,
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

// Endpoint gives the provider's own API address (the field endpoint_url), or usual
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
