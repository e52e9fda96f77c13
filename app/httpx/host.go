package httpx

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// Hosts are the names by which Loom is called, besides IP addresses and localhost. Any site
// can let a name of its own lead to Loom's address, and a browser then takes its pages and
// Loom for one site: where the peer's address alone gives rights, the name counts too.
type Hosts map[string]bool

// OwnHosts returns the name of this host and that of the public address, which may be empty.
func OwnHosts(publicURL string) Hosts {
	hosts := Hosts{}
	if name, err := os.Hostname(); err == nil && name != "" {
		name = plainHost(name)
		short, _, _ := strings.Cut(name, ".")
		hosts[name], hosts[short] = true, true
	}
	if u, err := url.Parse(publicURL); err == nil && u.Host != "" {
		hosts[plainHost(u.Host)] = true
	}
	return hosts
}

// Names reports whether a request calls Loom by an IP address, localhost or one of the
// names, and does not come from a page of another site. Behind a proxy that rewrites Host the
// name in X-Forwarded-Host counts too: unless it is one of the names, TLS must vouch for it,
// because a page can let a name of its own lead to the proxy as well.
func (h Hosts) Names(r *http.Request) bool {
	if !h.own(plainHost(r.Host)) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") { // browsers send it over TLS only, and to localhost
	case "":
	case "same-origin", "none":
		return true
	default:
		return false
	}
	return fromForwardedHost(r) || h.own(plainHost(r.Header.Get("X-Forwarded-Host"))) && h.ownOrigin(r)
}

func (h Hosts) own(host string) bool {
	if host == "" || host == "localhost" || h[host] { // no browser leaves it out
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// ownOrigin reports whether the header Origin is absent or names no other site.
func (h Hosts) ownOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && (strings.EqualFold(u.Host, r.Host) || strings.EqualFold(u.Host, r.Header.Get("X-Forwarded-Host")) || h[plainHost(u.Host)])
}

// maxHost is the longest name of a host with its port, in bytes.
const maxHost = 255 + len(":65535")

// namedProperly refuses requests that call Loom by what is no name, address or port: pages
// repeat it where they tell Loom's address.
func namedProperly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Host) > maxHost || strings.ContainsFunc(r.Host, oddInHost) {
			http.Error(w, "The header Host is no name or address with a port.", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func oddInHost(c rune) bool {
	plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	return !plain && !strings.ContainsRune(".-_:[]%", c)
}

// plainHost is a host without port, brackets, zone and the dot of the root.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	host, _, _ = strings.Cut(host, "%")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
