package httpx

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxForwarded is how many entries of X-Forwarded-For are looked at: a client may
// send as many as it likes.
const maxForwarded = 20

type (
	clientKey struct{}
	// forwardedKey is for the address that a trusted proxy forwards for, zero where it names none.
	forwardedKey struct{}
)

// Address is the client's address without a port: what limits, audit, sessions and
// tokens see. Behind a trusted proxy (BehindProxies) it is the one that the proxy
// names, else Peer.
func Address(r *http.Request) string {
	if client, ok := r.Context().Value(clientKey{}).(string); ok {
		return client
	}
	return Peer(r)
}

// Peer is the address of the connection's other end, without its port. Behind a proxy
// that is the proxy.
func Peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Within reports whether the peer, not the client, is in one of the networks: what a
// header says must not give rights.
func Within(r *http.Request, networks []netip.Prefix) bool {
	address, ok := parseAddress(Peer(r))
	return ok && within(address, networks)
}

// ClientWithin is Within, and for what a trusted proxy forwards the client must be in one of
// the networks too, by what the proxy says of him: a proxy of this host does not give its
// rights to everybody behind it.
func ClientWithin(r *http.Request, networks []netip.Prefix) bool {
	if client, forwarded := r.Context().Value(forwardedKey{}).(netip.Addr); forwarded && !within(client, networks) {
		return false
	}
	return Within(r, networks)
}

// BehindProxies lets Address give the client that a proxy names in X-Forwarded-For.
// Only what connects from one of the networks is believed.
func BehindProxies(proxies []netip.Prefix, next http.Handler) http.Handler {
	if len(proxies) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client, ok := forwardedFor(r, proxies); ok {
			ctx := context.WithValue(r.Context(), clientKey{}, client.String())
			r = r.WithContext(context.WithValue(ctx, forwardedKey{}, client))
		} else if Within(r, proxies) && (r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "") {
			r = r.WithContext(context.WithValue(r.Context(), forwardedKey{}, netip.Addr{})) // for whom is not known
		}
		next.ServeHTTP(w, r)
	})
}

// forwardedFor returns the right-most address of X-Forwarded-For outside the proxies: each
// proxy appends whom it heard from, so what stands left of that may be forged. ok is
// false when the peer is no proxy, and when the list holds no such address.
func forwardedFor(r *http.Request, proxies []netip.Prefix) (client netip.Addr, ok bool) {
	if !Within(r, proxies) {
		return client, false
	}
	looked := 0
	for _, line := range slices.Backward(r.Header.Values("X-Forwarded-For")) { // several lines are one list
		for comma := 0; comma >= 0; {
			comma = strings.LastIndexByte(line, ',')
			address, isAddress := parseAddress(line[comma+1:])
			if looked++; looked > maxForwarded || !isAddress {
				return client, false
			}
			if !within(address, proxies) {
				return address, true
			}
			line = line[:max(comma, 0)]
		}
	}
	return client, false
}

// parseAddress reads an address, with or without port and brackets, without its zone.
func parseAddress(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone(""), true
	}
	if inner, found := strings.CutPrefix(text, "["); found {
		text = strings.TrimSuffix(inner, "]")
	}
	address, err := netip.ParseAddr(text)
	return address.Unmap().WithZone(""), err == nil
}

func within(address netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}
