package health

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// server is a machine whose services answer on this host.
func server(t *testing.T, handler http.Handler, secure bool) (Machine, string) {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return Machine{Target: remote.Target{Address: "127.0.0.1", Reach: loom.Anywhere()}, Hostname: "shop1-1000.local"}, s.URL
}

func TestFetch(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	handler := http.NewServeMux()
	handler.HandleFunc("/fine", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("Loom is fine")) })
	handler.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.PathValue("code"))
		w.WriteHeader(code)
	})
	handler.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/status/500", http.StatusFound) })
	handler.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	handler.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat("x", maxBody) + "needle"))
	})
	handler.HandleFunc("/dies", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, secure := range []bool{false, true} {
		m, base := server(t, handler, secure)
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(base, "https://"), "http://"))
		byName := strings.Replace(base, "127.0.0.1", "shop1-1000.local", 1)
		for name, c := range map[string]struct {
			request Request
			want    string // the message of a failure, "" passes
		}{
			"fine":                             {Request{URL: base + "/fine", First: 200, Last: 399}, ""},
			"by the machine's name":            {Request{URL: byName + "/fine", First: 200, Last: 399}, ""},
			"with its text":                    {Request{URL: base + "/fine", First: 200, Last: 399, Contains: "is fine"}, ""},
			"without its text":                 {Request{URL: base + "/fine", First: 200, Last: 399, Contains: "is ill"}, "The response does not contain the text that the check expects."},
			"text beyond the bound":            {Request{URL: base + "/long", First: 200, Last: 399, Contains: "needle"}, "The response does not contain the text that the check expects."},
			"a redirect is followed by nobody": {Request{URL: base + "/away", First: 200, Last: 399}, ""},
			"a redirect is no 200":             {Request{URL: base + "/away", First: 200, Last: 200}, "HTTP status 302"},
			"an error":                         {Request{URL: base + "/status/503", First: 200, Last: 399}, "HTTP status 503"},
			"an error below 500":               {Request{URL: base + "/status/404", First: 100, Last: 499}, ""},
			"no response":                      {Request{URL: base + "/hangs", First: 200, Last: 399}, "no response within 1s"},
			"dies":                             {Request{URL: base + "/dies", First: 200, Last: 399}, "connection closed without a response"},
			"another machine":                  {Request{URL: "http://127.0.0.2:" + port + "/fine", First: 200, Last: 399}, errElsewhere.Error()},
			"no URL":                           {Request{URL: "file:///etc/passwd", First: 200, Last: 399}, "not a URL: file:///etc/passwd"},
		} {
			c.request.Timeout = 30 * time.Second
			if name == "no response" {
				c.request.Timeout = time.Second
			}
			got := Fetch(t.Context(), &remote.Dialer{}, m, c.request)
			if got.Passed != (c.want == "") || got.Message != c.want {
				t.Errorf("%s, TLS %t: %+v, want %q", name, secure, got, c.want)
			}
		}
	}
	close(hold)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	m := Machine{Target: remote.Target{Address: "127.0.0.1", Reach: loom.Anywhere()}}
	if got := Open(t.Context(), &remote.Dialer{}, m, port, 30*time.Second); !got.Passed {
		t.Errorf("a port that is open: %+v", got)
	}
	_ = listener.Close()
	if got := Open(t.Context(), &remote.Dialer{}, m, port, 30*time.Second); got.Passed || got.Message != "connection refused" {
		t.Errorf("a port that is closed: %+v", got)
	}
	m.Target.Reach = loom.Reach{}
	if got := Open(t.Context(), &remote.Dialer{}, m, port, 30*time.Second); got.Passed || got.Message == "connection refused" {
		t.Errorf("beyond the tenant's reach: %+v", got)
	}
	// Behind a jump host its own addresses are not the machine's.
	m.Target.Jump = []remote.Target{{Address: "127.0.0.1"}}
	if got := Open(t.Context(), &remote.Dialer{}, m, port, 30*time.Second); got.Message != errElsewhere.Error() {
		t.Errorf("loopback of a jump host: %+v", got)
	}
}
