package page

import (
	"net/http"
	"net/netip"
	"net/url"

	"loom/views/accountview"
	"loom/views/route"
)

// Origin is the address at which browsers reach Loom, without a slash at its end: the
// configured one, or, where Loom only knows that it listens everywhere, that of the
// request.
func (s *Shared) Origin(r *http.Request) string {
	u, err := url.Parse(s.PublicURL)
	if err == nil && u.Hostname() != "" {
		if ip, err := netip.ParseAddr(u.Hostname()); err != nil || !ip.IsUnspecified() {
			return s.PublicURL
		}
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// signInAddress is where somebody of a tenant signs in; the form has the tenant filled in.
func (s *Shared) signInAddress(r *http.Request, tenant string) string {
	return s.Origin(r) + route.Query(route.Login(""), accountview.FieldTenant, tenant)
}
