package cloud

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestProxy: the proxy that the operator's environment names may have any address; it
// is asked for nothing that the tenant may not reach.
func TestProxy(t *testing.T) {
	t.Parallel()
	asked := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked += " " + r.URL.Host }))
	t.Cleanup(proxy.Close)
	by, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	use := func(*http.Request) (*url.URL, error) { return by, nil }
	client := &http.Client{Transport: guarded{proxy: use, proxied: &http.Transport{Proxy: use}, direct: transport(true, loom.Reach{}, "")}}
	for address, may := range map[string]bool{
		"http://8.8.8.8/": true, "http://nobody.invalid/": true, "http://127.0.0.1:9/": false, "http://localhost:9/": false, "http://[::1]/": false,
		"http://169.254.169.254/": false, "http://10.0.0.1/": false, "http://" + by.Host: false,
	} {
		asked = ""
		answer, err := client.Get(address)
		if err == nil {
			answer.Body.Close()
		}
		var refused *loom.RefusedAddress
		if may && (err != nil || asked == "") || !may && (!Is(err, Refused) || !errors.As(err, &refused) || asked != "") {
			t.Errorf("%s: %v, asked for%s", address, err, asked)
		}
	}
}

// TestConnectionsAreNotShared: a connection that one tenant may open serves no other.
func TestConnectionsAreNotShared(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	session := func(r loom.Reach) *Session {
		return Options{Insecure: true}.Begin(loom.PluginType{}, &loom.TaskSpec{Reach: r}, nil, FromNetwork)
	}
	may := loom.Reach{Networks: loom.Named(netip.MustParsePrefix("127.0.0.0/8"))}
	for _, verify := range []bool{true, false} {
		for range 2 {
			answer, err := session(may).Client(verify).Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			answer, err = session(loom.Reach{Private: true}).Client(verify).Get(server.URL)
			if err == nil {
				answer.Body.Close()
			}
			if !Is(err, Refused) || !strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("verify %t: %v", verify, err)
			}
		}
	}
}
