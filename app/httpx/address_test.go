package httpx

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestClientBehindProxies: only what trusted proxies appended themselves is believed.
func TestClientBehindProxies(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::/64"), netip.MustParsePrefix("127.0.0.1/32")}
	const proxy = "10.0.0.1:4711"
	many := func(n int, entry string) string { return strings.TrimSuffix(strings.Repeat(entry+", ", n), ", ") }
	for _, c := range []struct {
		name, peer string
		lines      []string
		want       string
	}{
		{"no header", proxy, nil, "10.0.0.1"},
		{"one proxy", proxy, []string{"203.0.113.5"}, "203.0.113.5"},
		{"forged by somebody who is no proxy", "198.51.100.7:1", []string{"203.0.113.5"}, "198.51.100.7"},
		{"forged with the address of a proxy", "198.51.100.7:1", []string{"10.0.0.1, 127.0.0.1"}, "198.51.100.7"},
		{"forged on the left", proxy, []string{"127.0.0.1, 1.2.3.4, 203.0.113.5"}, "203.0.113.5"},
		{"forged on the left with a proxy", proxy, []string{"1.2.3.4, 10.0.0.9, 203.0.113.5"}, "203.0.113.5"},
		{"two proxies", proxy, []string{"1.2.3.4, 203.0.113.5, 10.0.0.2"}, "203.0.113.5"},
		{"two proxies, two lines", proxy, []string{"1.2.3.4, 203.0.113.5", "10.0.0.2"}, "203.0.113.5"},
		{"forged line, then that of the proxy", proxy, []string{"1.2.3.4", "203.0.113.5"}, "203.0.113.5"},
		{"a port", proxy, []string{"203.0.113.5:50123"}, "203.0.113.5"},
		{"no blanks", proxy, []string{"1.2.3.4,203.0.113.5:50123,10.0.0.2:80"}, "203.0.113.5"},
		{"IPv6", proxy, []string{"2001:db8::5"}, "2001:db8::5"},
		{"IPv6 with a port", proxy, []string{"[2001:db8::5]:50123"}, "2001:db8::5"},
		{"IPv6 in brackets", proxy, []string{"[2001:db8::5]"}, "2001:db8::5"},
		{"IPv6 with a zone", proxy, []string{"fe80::1%eth0"}, "fe80::1"},
		{"IPv6 proxies", "[fd00::1]:4711", []string{"2001:db8::5, fd00::2"}, "2001:db8::5"},
		{"an IPv4 proxy on an IPv6 socket", "[::ffff:10.0.0.1]:4711", []string{"::ffff:203.0.113.5"}, "203.0.113.5"},
		{"no address ends the search", proxy, []string{"203.0.113.5, unknown, 10.0.0.2"}, "10.0.0.1"},
		{"an empty entry ends the search", proxy, []string{"203.0.113.5,"}, "10.0.0.1"},
		{"an empty line ends the search", proxy, []string{"203.0.113.5", ""}, "10.0.0.1"},
		{"garbage on the left is not reached", proxy, []string{"<script>, 203.0.113.5"}, "203.0.113.5"},
		{"proxies alone", proxy, []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.1"},
		{"the 20th entry", proxy, []string{"203.0.113.5, " + many(19, "10.0.0.2")}, "203.0.113.5"},
		{"the 21st entry", proxy, []string{"203.0.113.5, " + many(20, "10.0.0.2")}, "10.0.0.1"},
		{"no address of a peer", "@", []string{"203.0.113.5"}, "@"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = c.peer
			for _, line := range c.lines {
				r.Header.Add("X-Forwarded-For", line)
			}
			got, peer := "", ""
			BehindProxies(proxies, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, peer = Address(r), Peer(r) })).ServeHTTP(nil, r)
			if got != c.want {
				t.Errorf("the client is %s, want %s", got, c.want)
			}
			if peer != Peer(&http.Request{RemoteAddr: c.peer}) {
				t.Errorf("the peer became %s", peer)
			}
			if without := Address(r); without != peer {
				t.Errorf("without proxies the client is %s", without)
			}
		})
	}
}

// TestProxiesGiveNoRights: users by headers come from a named network themselves; behind a
// trusted proxy of one both count, and a proxy that is not trusted is the client.
func TestProxiesGiveNoRights(t *testing.T) {
	t.Parallel()
	networks := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.17/32")}
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.1/32")}
	for _, c := range []struct {
		name, peer, header, value string
		want                      bool
	}{
		{"a script of this host", "127.0.0.1:1", "", "", true},
		{"a script of a named host", "192.0.2.17:1", "", "", true},
		{"a stranger", "198.51.100.7:1", "", "", false},
		{"a stranger behind a proxy of this host", "127.0.0.1:1", "X-Forwarded-For", "198.51.100.7", false},
		{"one who forges", "127.0.0.1:1", "X-Forwarded-For", "127.0.0.1, 198.51.100.7", false},
		{"one of whom the proxy tells nothing readable", "127.0.0.1:1", "X-Forwarded-For", "unknown", false},
		{"one of whom it tells otherwise", "127.0.0.1:1", "Forwarded", "for=198.51.100.7", false},
		{"a named host behind a proxy of this host", "127.0.0.1:1", "X-Forwarded-For", "192.0.2.17", true},
		{"a named host behind a proxy that is not named", "10.0.0.1:1", "X-Forwarded-For", "192.0.2.17", false},
		{"a named proxy that checks certificates, and is no trusted one", "192.0.2.17:1", "X-Forwarded-For", "198.51.100.7", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		BehindProxies(proxies, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := ClientWithin(r, networks); got != c.want {
				t.Errorf("%s: %v", c.name, got)
			}
		})).ServeHTTP(nil, r)
	}
}

// TestWithinAsksThePeer: what X-Forwarded-For says gives no rights.
func TestWithinAsksThePeer(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	for peer, want := range map[string]bool{"10.0.0.1:1": false, "192.0.2.1:1": true, "[::ffff:192.0.2.1]:1": true} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		BehindProxies(proxies, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if Within(r, trusted) != want {
				t.Errorf("%s: within is %v, the client is %s", peer, !want, Address(r))
			}
		})).ServeHTTP(nil, r)
	}
}
