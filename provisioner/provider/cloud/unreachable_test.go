package cloud_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/cloudtest"
	"loom/provisioner/provider/cloud"
)

// secure starts a server with a certificate for some names.
func secure(t *testing.T, names ...string) (address, authority string) {
	t.Helper()
	own, authority, err := fakecloud.Certificate(names...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{own}}
	server.Config.ErrorLog = cloudtest.Silent()
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, authority
}

// closed is the address of a port that nobody listens at.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// TestUnreachable: what no second call would change ends at the first one, is reported in
// the words of the trouble, and made nothing.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	trusted, authority := secure(t, "127.0.0.1")
	named, ofNamed := secure(t, "cloud.example")
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	nobody := closed(t)
	for _, c := range []struct {
		what, address, authority string
		says                     []string
	}{
		{"an authority that is named", trusted, authority, nil},
		{"two of them", trusted, ofNamed + "\n" + authority, nil},
		{"an unknown authority", trusted, "", []string{strings.TrimPrefix(trusted, "https://"), "is not trusted", "x509: certificate signed by unknown authority", "api_ca"}},
		{"another authority", trusted, ofNamed, []string{"is not trusted"}},
		{"another name", named, ofNamed, []string{"for another name", "127.0.0.1"}},
		{"no authority", trusted, "hello", []string{"api_ca", "BEGIN CERTIFICATE"}},
		{"plain HTTP", "https://" + strings.TrimPrefix(plain.URL, "http://"), "", []string{"does not speak TLS but plain HTTP", "first record does not look like a TLS handshake"}},
		{"nobody", "http://" + nobody, "", []string{nobody + " refuses the connection: connect: connection refused"}},
		{"no such name", "http://nobody.invalid", "", []string{"the name nobody.invalid does not resolve: no such host"}},
	} {
		clock, calls := &cloudtest.Clock{}, 0
		s := cloud.Options{Insecure: true, Pace: cloud.Pace{Sleep: clock.Sleep}}.Begin(plainType,
			&loom.TaskSpec{Provider: loom.Provider{Fields: map[string]any{"api_ca": c.authority}}, Reach: loom.Anywhere()}, nil, classify)
		err := s.Call(t.Context(), func(ctx context.Context) error {
			calls++
			return get(ctx, s.Client(true), c.address)
		})
		if c.says == nil {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		e := s.Error(err)
		if kind := e.Kind; kind != cloud.Unreachable && c.what != "no authority" || calls != 1 || len(clock.Waits()) != 0 {
			t.Errorf("%s: %s after %d calls and %v", c.what, kind, calls, clock.Waits())
		}
		for _, word := range c.says {
			if !strings.Contains(e.Message, word) {
				t.Errorf("%s: %q does not say %q", c.what, e.Message, word)
			}
		}
		if result, _ := s.CreateFailure(t.Context(), err); result.Status != 202 || result.Retryable == nil || *result.Retryable {
			t.Errorf("%s: CREATE gave %+v", c.what, result)
		}
	}
}

func get(ctx context.Context, client *http.Client, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// TestRestart: a cloud that answered a moment ago and refuses connections is being
// restarted, and is waited for; whoever waits for a probe hears it at once.
func TestRestart(t *testing.T) {
	t.Parallel()
	address := closed(t)
	serve := func() *httptest.Server {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Skipf("the port was taken: %v", err)
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: 1e9}}
		server.Start()
		return server
	}
	server := serve()
	clock := &cloudtest.Clock{}
	options := cloud.Options{Insecure: true, Pace: cloud.Pace{Sleep: clock.Sleep}}
	s := options.Begin(plainType, &loom.TaskSpec{Reach: loom.Anywhere()}, nil, classify)
	if err := get(t.Context(), s.Client(true), "http://"+address); err != nil {
		t.Fatal(err)
	}
	server.Close()
	calls := 0
	if err := s.Call(t.Context(), func(ctx context.Context) error {
		if calls++; calls == 3 {
			server = serve()
		}
		return get(ctx, s.Client(true), "http://"+address)
	}); err != nil || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
	server.Close()
	probe := options.Ask(plainType, &loom.ProviderCall{Reach: loom.Anywhere()}, classify)
	calls = 0
	if err := probe.Call(t.Context(), func(ctx context.Context) error {
		calls++
		return get(ctx, probe.Client(true), "http://"+address)
	}); !cloud.Is(err, cloud.Unreachable) || calls != 1 {
		t.Errorf("a probe: %v after %d calls", err, calls)
	}
}

// TestProbesAreBrief: whoever waits for a probe hears it after the second try.
func TestProbesAreBrief(t *testing.T) {
	t.Parallel()
	clock := &cloudtest.Clock{}
	s := cloud.Options{Pace: cloud.Pace{Sleep: clock.Sleep}}.Ask(plainType, &loom.ProviderCall{}, classify)
	for code, c := range map[int]struct {
		after string
		calls int
	}{503: {"", 2}, 429: {"20", 1}} {
		calls := 0
		if err := s.Call(t.Context(), func(context.Context) error { calls++; return status{code, c.after} }); err == nil || calls != c.calls {
			t.Errorf("%d: %v after %d calls", code, err, calls)
		}
	}
}
