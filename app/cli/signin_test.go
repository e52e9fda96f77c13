package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

// kept returns the users in the file of sign-ins.
func kept(t *testing.T, e *wiring.Environment) []string {
	t.Helper()
	known, err := e.SignIns()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range known {
		names = append(names, k.Tenant+"/"+k.User)
	}
	return names
}

// TestSignInsAreForgotten: a generated password is on disk until its first use, whoever
// serves the sign-in, and no longer.
func TestSignInsAreForgotten(t *testing.T) {
	t.Parallel()
	e, s, address := listening(t, &keep{})
	dir, err := e.DataDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, wiring.SignInFile)
	known, err := e.SignIns()
	if err != nil || len(known) != 3 || known[0].Tenant != "superadmin" {
		t.Fatalf("%d sign-ins, %v", len(known), err)
	}
	super, admin, user := known[0], known[1], known[2]
	listed := func(want ...wiring.SignIn) {
		t.Helper()
		var out bytes.Buffer
		if err := e.PrintSignIns(t.Context(), s, &out); err != nil {
			t.Fatal(err)
		}
		for _, k := range known {
			if has := strings.Contains(out.String(), k.Password.Reveal()); has != slices.Contains(want, k) {
				t.Errorf("the password of %s/%s is listed: %v", k.Tenant, k.User, has)
			}
		}
	}
	listed(super, admin, user)

	// A wrong password forgets nothing, the right one does at once.
	signInAt(t, address, "superadmin", "admin", "wrong", "")
	if got := kept(t, e); len(got) != 3 {
		t.Errorf("after a wrong password %v", got)
	}
	if a := signInAt(t, address, "superadmin", "admin", super.Password.Reveal(), ""); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign in: %s", a.Status)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), super.Password.Reveal()) || strings.Join(kept(t, e), " ") != "demo/admin demo/user" {
		t.Errorf("after the sign-in of superadmin: %v\n%s", err, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	listed(admin, user)

	// One who signs in at a process of another host, and one with another password now,
	// go with the next start or list.
	elsewhere := account.New(s.DB, s.Ring)
	if _, _, _, err := elsewhere.SignIn(t.Context(), account.SignInInput{Tenant: "demo", User: "user", Password: user.Password}); err != nil {
		t.Fatal(err)
	}
	if got := kept(t, e); len(got) != 2 {
		t.Errorf("before the sweep %v", got)
	}
	if err := e.SweepSignIns(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(kept(t, e), " "); got != "demo/admin" {
		t.Errorf("after the sweep %s", got)
	}
	if _, err := elsewhere.SetPassword(t.Context(), "demo", "admin", loom.NewSecret("four words in a row")); err != nil {
		t.Fatal(err)
	}
	listed()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty file stays: %v", err)
	}

	// A reset on the command line is kept until it was used.
	if err := (&userPassword{userOf{"user", "demo"}}).Run(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	known, err = e.SignIns()
	if err != nil || len(known) != 1 {
		t.Fatalf("after a reset %v, %v", known, err)
	}
	if a := signInAt(t, address, "demo", "user", known[0].Password.Reveal(), ""); a.StatusCode != http.StatusSeeOther {
		t.Errorf("sign in: %s", a.Status)
	}
	if got := kept(t, e); len(got) != 0 {
		t.Errorf("in the end %v", got)
	}
}

// TestSignInFileOfMany: processes that keep and forget at the same time lose nothing.
func TestSignInFileOfMany(t *testing.T) {
	t.Parallel()
	e := quietEnvironment(t, "LOOM_DATA_DIR="+t.TempDir())
	e.MakesInstance = true
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			user := loom.UserID(fmt.Sprintf("user-%02d", i))
			if err := e.KeepSignIns(t.Context(), []account.MadeUser{{Tenant: "demo", User: user, Password: loom.NewSecret("x")}}); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				e.ForgetSignIn(t.Context(), "demo", user)
			}
		})
	}
	all.Wait()
	if got := kept(t, e); len(got) != 10 || slices.ContainsFunc(got, func(name string) bool { return strings.ContainsAny(name[len(name)-1:], "02468") }) {
		t.Errorf("kept are %v", got)
	}
}

// TestUserUnlock: the command line lets somebody try again.
func TestUserUnlock(t *testing.T) {
	t.Parallel()
	e, s, address := listening(t, &keep{})
	known, err := e.SignIns()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		signInAt(t, address, "demo", "user", "wrong", "")
	}
	if _, err := s.DB.ExecContext(t.Context(), `UPDATE sign_in_failures SET last_at = now() + interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	password := known[2].Password.Reveal()
	if a := signInAt(t, address, "demo", "user", password, ""); a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("after five wrong passwords: %s", a.Status)
	}
	if err := (&userUnlock{userOf{"nobody", "demo"}}).Run(t.Context(), e); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("nobody is unlocked: %v", err)
	}
	if err := (&userUnlock{userOf{"user", "demo"}}).Run(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if a := signInAt(t, address, "demo", "user", password, ""); a.StatusCode != http.StatusSeeOther {
		t.Errorf("after unlocking: %s", a.Status)
	}
}
