package cloud

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"loom/provisioner/provider"
)

const (
	// callLimit is how long one call may take, its answer included.
	callLimit = 30 * time.Second
	// answerLimit is the most that is read of an answer.
	answerLimit = 64 << 20
)

// The connections are shared by all providers: a session is too short to keep its
// own.
var (
	verified   = transport(true)
	unverified = transport(false)
)

func transport(verify bool) http.RoundTripper {
	t := &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		// A peer that resolves and accepts but never shakes hands must not take the whole limit.
		TLSHandshakeTimeout: 15 * time.Second, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 60 * time.Second,
	}
	if !verify {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the provider's own field says so
	}
	return bounded{t}
}

// bounded gives no more than answerLimit bytes of an answer.
type bounded struct{ http.RoundTripper }

// RoundTrip bounds the body.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = boundedBody{io.LimitReader(response.Body, answerLimit), response.Body}
	}
	return response, err
}

type boundedBody struct {
	io.Reader
	io.Closer
}

// Client makes calls of 30 s at most, through the proxy that the environment names
// (HTTPS_PROXY, NO_PROXY). It follows no redirects, which would carry credentials
// elsewhere. verify false takes any certificate: only where a field of the
// provider says so.
func Client(verify bool) *http.Client {
	c := &http.Client{Transport: verified, Timeout: callLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if !verify {
		c.Transport = unverified
	}
	return c
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
func (o Options) Endpoint(fields Fields, usual string) (string, error) {
	text := fields.Text(provider.EndpointField)
	if text == "" {
		return usual, nil
	}
	return o.CheckURL(provider.EndpointField, text)
}

// CheckURL checks the address of an API in a field of the provider.
func (o Options) CheckURL(field, text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", Errorf(Refused, "provider field %s is no address of an API; give a URL such as https://cloud.example", field)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", Errorf(Refused, "provider field %s has more than host and path; take out user, question mark and what follows", field)
	case u.Scheme == "http" && !o.Insecure:
		return "", Errorf(Refused, "provider field %s is http://%s, which is not encrypted; use HTTPS, or start Loom with LOOM_ALLOW_INSECURE_ENDPOINTS=true", field, u.Host)
	}
	return u.String(), nil
}
