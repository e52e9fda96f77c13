package cloudtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// elsewhere is an address of this host that the fake cloud does not use.
const elsewhere = "127.0.0.2"

// trap is a server that nobody may connect to.
type trap struct {
	at   string
	hits atomic.Int32
}

func newTrap(t testing.TB, address string) *trap {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p := &trap{at: listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.hits.Add(1)
			conn.Close()
		}
	}()
	return p
}

// walls checks what the provider connects to: only what the reach of
// the task allows, by whatever way an address gets to it. Every provider of a cloud has
// to pass it.
func (l *Lab) walls() {
	l.t.Helper()
	four, six := newTrap(l.t, elsewhere), newTrap(l.t, "::1")
	machine := l.Spec(0)
	l.Must(machine, loom.ActionCreate, 0)
	port := mustParse(l.t, l.Cloud.URL()).Port()
	name := "localhost"
	if l.signs() {
		name = "127.0.0.1" // by the address in its key
	}
	for endpoint, says := range map[string]string{
		"http://127.0.0.1:" + port: "127.0.0.1", "http://localhost:" + port: name, "http://" + four.at: elsewhere, "http://" + six.at: "::1",
		"http://[::ffff:127.0.0.1]:" + port: "127.0.0.1", "http://[64:ff9b::7f00:1]:" + port: "64:ff9b::7f00:1",
		"http://169.254.169.254": "169.254.169.254", "https://169.254.169.254": "169.254.169.254", "http://10.0.0.1": "10.0.0.1", "http://0.0.0.0:" + port: "0.0.0.0",
	} {
		l.refused(machine, endpoint, loom.Reach{}, says)
	}
	l.refused(machine, "http://127.0.0.1:"+port, loom.Reach{Private: true}, "127.0.0.1")
	api := loom.Reach{Networks: loom.Named(netip.MustParsePrefix("127.0.0.1/32"))}
	l.opened(api)
	l.redirected(api, four)
	l.misled(api, four)
	l.reported(api)
	if n := four.hits.Load() + six.hits.Load(); n != 0 {
		l.t.Errorf("%d connections to where nobody may connect", n)
	}
}

func mustParse(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// at returns a task whose API is elsewhere.
func (l *Lab) at(n int, endpoint string, reach loom.Reach) *loom.TaskSpec {
	spec := l.Spec(n)
	spec.Reach = reach
	spec.Provider.Fields[provider.EndpointField] = endpoint
	return spec
}

// refused: all that a provider does ends for good, names the address, or the name that
// was given and not what it leads to, and calls nothing.
func (l *Lab) refused(machine *loom.TaskSpec, endpoint string, reach loom.Reach, says string) {
	l.t.Helper()
	before := len(l.Cloud.Calls(""))
	names := func(text string) bool {
		leaks := says == "localhost" && (strings.Contains(text, "127.0.0.1") || strings.Contains(text, "::1"))
		return strings.Contains(text, says+" ") && strings.Contains(text, "LOOM_PROVIDER_NETWORKS") && !leaks
	}
	for _, action := range []loom.TaskAction{loom.ActionCreate, loom.ActionConfirm, loom.ActionDelete} {
		spec := l.at(1, endpoint, reach)
		if action != loom.ActionCreate {
			spec.Results = maps.Clone(machine.Results)
		}
		result, sink, err := l.Do(l.Context(), spec, action)
		never := result.Retryable != nil && !*result.Retryable
		if err != nil || result.Status == 0 || !never || !names(result.Message) || action == loom.ActionCreate && result.Status != 202 {
			l.t.Errorf("%s with the API at %s gave %+v, %v (never %t)\n%s", action, endpoint, result, err, never, sink.Text())
		}
	}
	call := l.Call()
	call.Reach, call.Provider = reach, l.at(1, endpoint, reach).Provider
	if probe, err := l.Provider.(provider.Prober).Probe(l.Context(), call); err != nil || probe.OK || !names(fmt.Sprint(probe.Checks)) {
		l.t.Errorf("a probe of %s gave %+v, %v", endpoint, probe, err)
	}
	if list, err := l.Provider.(provider.Lister).List(l.Context(), call); err == nil || !names(err.Error()) {
		l.t.Errorf("a list of %s gave %v, %v", endpoint, list, err)
	}
	if calls := len(l.Cloud.Calls("")); calls != before {
		l.t.Errorf("%d calls with the API at %s", calls-before, endpoint)
	}
}

// opened: the switch of the tenant opens private networks. Whether somebody answers
// there is not asked.
func (l *Lab) opened(reach loom.Reach) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 200*time.Millisecond)
	defer cancel()
	reach.Private = true
	result, _, err := l.Do(ctx, l.at(2, "http://10.0.0.1", reach), loom.ActionCreate)
	if err == nil && strings.Contains(result.Message, "LOOM_PROVIDER_NETWORKS") || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		l.t.Errorf("with private networks: %+v, %v", result, err)
	}
}

// redirected: an API that may be called leads elsewhere.
func (l *Lab) redirected(reach loom.Reach, to *trap) {
	l.t.Helper()
	calls := atomic.Int32{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "http://"+to.at+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer front.Close()
	if result, _, err := l.Do(l.Context(), l.at(3, front.URL, reach), loom.ActionCreate); err != nil || result.Status == 0 || calls.Load() == 0 && !l.signs() {
		l.t.Errorf("a redirect gave %+v, %v after %d calls", result, err, calls.Load())
	}
}

// signs reports whether the provider signs in elsewhere than at its API.
func (l *Lab) signs() bool { return l.Provider.Type().Name == "google" }

// misled: every address of itself that the API tells leads elsewhere, such as those in
// a catalog of services.
func (l *Lab) misled(reach loom.Reach, to *trap) {
	l.t.Helper()
	told := atomic.Int32{}
	var front *httptest.Server
	front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		again, err := http.NewRequestWithContext(r.Context(), r.Method, l.Cloud.URL()+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		again.Header, again.Host = r.Header.Clone(), r.Host
		again.Header.Del("Accept-Encoding")
		answer, err := http.DefaultClient.Do(again)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		said, _ := io.ReadAll(answer.Body)
		text := string(said)
		for _, own := range []string{l.Cloud.URL(), front.URL} {
			host := strings.TrimPrefix(own, "http://")
			told.Add(int32(strings.Count(text, host))) //nolint:gosec // few
			text = strings.ReplaceAll(text, host, to.at)
		}
		for name, values := range answer.Header {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = io.WriteString(w, text)
	}))
	defer front.Close()
	result, _, err := l.Do(l.Context(), l.at(4, front.URL, reach), loom.ActionCreate)
	if told.Load() == 0 {
		return // this API tells none
	}
	never := result.Retryable != nil && !*result.Retryable
	if err != nil || result.Status != 202 || !never || !strings.Contains(result.Message, elsewhere+" ") {
		l.t.Errorf("addresses that the API tells gave %+v, %v", result, err)
	}
	l.t.Logf("%s: the API gave %d addresses", l.Provider.Type().Name, told.Load())
}

// reported: a machine is made, and has an address that nobody may connect to.
func (l *Lab) reported(reach loom.Reach) {
	l.t.Helper()
	for n, address := range []string{elsewhere, "10.0.0.1", "169.254.169.254"} {
		l.Report = address
		spec := l.Spec(5 + n)
		spec.Reach = reach
		l.Must(spec, loom.ActionCreate, 0)
		result, sink, err := l.Do(l.Context(), spec, loom.ActionConfirm)
		never := result.Retryable != nil && !*result.Retryable
		if address == "169.254.169.254" && strings.Contains(result.Message, "no address") {
			never, result.Message = true, "no SSH connection to "+address // it is passed over
		}
		if err != nil || result.Status == 0 || !never || !strings.Contains(result.Message, "no SSH connection to "+address) {
			l.t.Errorf("a machine at %s gave %+v, %v\n%s", address, result, err, sink.Text())
		}
		l.Must(spec, loom.ActionDelete, 0)
	}
	l.Report = ""
}
