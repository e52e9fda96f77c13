package api

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

// FuzzBearer reads headers with tokens: what comes out is in the header, without
// blanks around it, and from a trusted network what is no token counts as none.
func FuzzBearer(f *testing.F) {
	for _, h := range [][2]string{{"Bearer loom_x", ""}, {"bearer: loom_x", dummyKey}, {"Bearer", "loom_y"}, {"Bearer :x", " " + dummyKey + " "}, {"Basic eDp5", ""}, {"", "\xff"}, {"Bearer\tx", ""}} {
		f.Add(h[0], h[1], true)
		f.Add(h[0], h[1], false)
	}
	f.Fuzz(func(t *testing.T, authorization, key string, trusted bool) {
		r := httptest.NewRequest(http.MethodGet, "/v2/whoami", nil)
		r.Header["Authorization"], r.Header[http.CanonicalHeaderKey(headerKey)] = []string{authorization}, []string{key}
		token, err := tokenOf(r, trusted)
		if err != nil {
			if kind := loom.AsError(err).Kind; token != "" || kind != loom.Unauthenticated && kind != loom.Invalid {
				t.Errorf("%q, %q: %q, %v", authorization, key, token, err)
			}
			return
		}
		if token != strings.TrimSpace(token) || !strings.Contains(authorization+" "+key, token) {
			t.Errorf("%q, %q give %q", authorization, key, token)
		}
		if !account.IsToken(token) && token != "" && trusted && strings.TrimSpace(authorization) == "" {
			t.Errorf("the dummy key counts as a token")
		}
		if token == "" && (strings.TrimSpace(authorization) != "" || strings.TrimSpace(key) != "" && account.IsToken(strings.TrimSpace(key))) {
			t.Errorf("%q, %q count as nothing", authorization, key)
		}
	})
}

// FuzzAccountFilters reads the query of the list of users: it is understood, or
// refused with the parameter's name.
func FuzzAccountFilters(f *testing.F) {
	for _, q := range []string{"role=user,admin&disabled=true&q=x&limit=3", "role=,,&disabled=&limit=", "after=x&before=y", "limit=-1", "role=%ff&q=%00", "%zz", "sort=id;role=x"} {
		f.Add(q)
	}
	a := &api{}
	var users route
	for _, rt := range a.routes() {
		if rt.method == get && rt.path == "/v2/users" {
			users = rt
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r := &http.Request{Method: get, URL: &url.URL{Path: "/v2/users", RawQuery: raw}, Header: http.Header{}}
		errs := []error{users.checkQuery(r.URL.Query())}
		_, err := readPage(r, true)
		errs = append(errs, err)
		found, err := oneOf(r, "role", roles)
		errs = append(errs, err)
		_, err = queryBool(r, "disabled")
		errs = append(errs, err)
		for _, err := range errs {
			if err == nil {
				continue
			}
			e := loom.AsError(err)
			if e.Kind != loom.Invalid || len(e.Fields) == 0 || e.Fields[0].Message == "" {
				t.Errorf("%q: %v", raw, err)
			}
		}
		for _, role := range found {
			if !holds(roles, role) {
				t.Errorf("%q gives the role %q", raw, role)
			}
		}
	})
}

// FuzzTrusted asks for addresses of all kinds whether they are in a network.
func FuzzTrusted(f *testing.F) {
	for _, address := range []string{"127.0.0.1:80", "[::ffff:127.0.0.1]:80", "[::1%lo]:80", "10.0.0.1:1", "nonsense", ""} {
		f.Add(address)
	}
	a := &api{Deps: Deps{TrustedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	f.Fuzz(func(t *testing.T, remote string) {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{}}
		if a.trusts(r) && !strings.Contains(remote, "127.") && !strings.Contains(strings.ToLower(remote), "7f") {
			t.Errorf("%q is trusted", remote)
		}
	})
}
