package httpx

import (
	"net/http"
	"strings"
)

// CheckSite returns an error for a request that changes something and comes from a page of
// another site. It is protection.Check, which also accepts the site that a proxy was called by.
func CheckSite(protection *http.CrossOriginProtection, r *http.Request) error {
	if r.Header.Get("Sec-Fetch-Site") == "" && fromForwardedHost(r) {
		return nil
	}
	return protection.Check(r)
}

// fromForwardedHost reports whether a request comes from a page of the site that a proxy was
// called by, over TLS. No page of another site can make this true: browsers set Origin
// themselves, ask Loom before they send X-Forwarded-Host elsewhere, and hold the proxy's
// certificate against its name.
func fromForwardedHost(r *http.Request) bool {
	host := r.Header.Get("X-Forwarded-Host")
	return host != "" && strings.EqualFold(r.Header.Get("Origin"), "https://"+host)
}
