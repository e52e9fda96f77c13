package cli

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loom/app/config"
	"loom/app/testkit"
	"loom/app/wiring"
)

// listening serves the pages of a fresh installation and gives their address, with the
// passwords of the first start.
func listening(t *testing.T, log *keep, options ...string) (e *wiring.Environment, s *wiring.System, address string) {
	t.Helper()
	db := testkit.NewDatabase(t)
	values, err := config.Load(nil, append([]string{"LOOM_DATA_DIR=" + t.TempDir(), "LOOM_DATABASE_URL=" + db.DSN, "LOOM_LISTEN_ADDR=127.0.0.1:0", "LOOM_DATABASE_CONNS=6"}, options...))
	if err != nil {
		t.Fatal(err)
	}
	e = &wiring.Environment{Values: values, Log: slog.New(slog.NewTextHandler(log, nil)), Out: log, ErrOut: log, MakesInstance: true}
	t.Cleanup(e.Close)
	if s, err = e.System(t.Context()); err != nil {
		t.Fatal(err)
	}
	made, err := s.Accounts.EnsureSuperadmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	more, err := s.Accounts.EnsureDemo(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.KeepSignIns(t.Context(), append(made, more...)); err != nil {
		t.Fatal(err)
	}
	site, err := e.Listen(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- site.Server.Serve(site.Listener) }()
	t.Cleanup(func() {
		site.Server.Close()
		<-ended
	})
	return e, s, "http://" + site.Listener.Addr().String()
}

// signInAt sends the form of sign-in, as from a proxy that heard from somebody.
func signInAt(t *testing.T, address, tenant, user, password, heardFrom string) *http.Response {
	t.Helper()
	form := url.Values{"tenant": {tenant}, "user": {user}, "password": {password}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", heardFrom)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer
}

// TestTrustedProxies: with LOOM_TRUSTED_PROXIES the address that a proxy names is that
// of sessions and of the limits of sign-in; without it the header means nothing.
func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options []string
		address string
		warned  bool
	}{
		{nil, "127.0.0.1", false},
		{[]string{"LOOM_PUBLIC_URL=http://loom.example"}, "127.0.0.1", true},
		{[]string{"LOOM_TRUSTED_PROXIES=10.0.0.0/8"}, "127.0.0.1", false},
		{[]string{"LOOM_PUBLIC_URL=http://loom.example", "LOOM_TRUSTED_PROXIES=127.0.0.0/8, 10.0.0.0/8"}, "203.0.113.5", false},
	} {
		t.Run(fmt.Sprint(c.options), func(t *testing.T) {
			t.Parallel()
			log := &keep{}
			e, s, address := listening(t, log, c.options...)
			known, err := e.SignIns()
			if err != nil || len(known) != 3 {
				t.Fatalf("%d sign-ins, %v", len(known), err)
			}
			const heardFrom = "198.51.100.1, 203.0.113.5, 10.0.0.3"
			if a := signInAt(t, address, "demo", "user", "wrong", heardFrom); a.StatusCode != http.StatusUnauthorized {
				t.Errorf("a wrong password: %s", a.Status)
			}
			if a := signInAt(t, address, known[0].Tenant, known[0].User, known[0].Password.Reveal(), heardFrom); a.StatusCode != http.StatusSeeOther {
				t.Errorf("sign in: %s", a.Status)
			}
			for what, query := range map[string]string{
				"session":  `SELECT string_agg(address, ' ') FROM sessions`,
				"audit":    `SELECT string_agg(DISTINCT address, ' ') FROM audit WHERE verb = 'sign_in'`,
				"throttle": `SELECT string_agg(substr(subject, 9), ' ') FROM sign_in_failures WHERE subject LIKE 'address:%'`,
			} {
				var got string
				if err := s.DB.GetContext(t.Context(), &got, query); err != nil || got != c.address {
					t.Errorf("%s: %q, %v; want %s", what, got, err, c.address)
				}
			}
			if warned := strings.Contains(log.read(), "LOOM_TRUSTED_PROXIES is not"); warned != c.warned {
				t.Errorf("warned is %v: %s", warned, log.read())
			}
		})
	}
	e := quietEnvironment(t, "LOOM_TRUSTED_PROXIES=everybody")
	if _, err := e.Proxies(); err == nil || !strings.Contains(err.Error(), "LOOM_TRUSTED_PROXIES") {
		t.Errorf("a bad network: %v", err)
	}
}
