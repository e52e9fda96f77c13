package account

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"loom/app/loom"
)

// FuzzUserCheck holds what passes the check of users against what the rest of
// Loom relies on.
func FuzzUserCheck(f *testing.F) {
	f.Add("ana", "Ana", "ana@example.org", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGxFqpl6X1gXHUXcYbYv0Zc7TtH0K0K0x1VYqZb8mQmN ana@laptop")
	f.Add("..", "\x00", "a@b, c@d", "-----BEGIN OPENSSH PRIVATE KEY-----")
	f.Add(" x", strings.Repeat("é", 201), "<a@b>", `command="x" ssh-ed25519 AAAA`)
	f.Fuzz(func(t *testing.T, id, name, email, key string) {
		if !utf8.ValidString(id + name + email + key) {
			return // refused before, where texts are read
		}
		user := loom.User{ID: loom.UserID(id), DisplayName: name, Email: email, SSHKeys: []string{key}}
		errs := checkUser(&user)
		for _, e := range errs {
			if e.Message == "" || !slices.Contains([]string{"id", "displayName", "email", "sshKeys[0]"}, e.Field) {
				t.Errorf("an error without sense: %+v", e)
			}
		}
		if len(errs) > 0 {
			return
		}
		if id == "" || id == ".." || strings.ContainsAny(id, "/\x00\n\r") || len([]rune(id)) > 255 {
			t.Errorf("the id %q passed", id)
		}
		if strings.ContainsAny(name+email, "\x00") || strings.ContainsAny(email, "\r\n") {
			t.Errorf("%q or %q passed", name, email)
		}
		for _, line := range user.SSHKeys {
			if strings.ContainsAny(line, "\n\r\x00") {
				t.Errorf("a key of several lines passed: %q", line)
			}
		}
		again := user
		if errs := checkUser(&again); len(errs) > 0 || !slices.Equal(again.SSHKeys, user.SSHKeys) {
			t.Errorf("cleaned keys %q become %q, %v", user.SSHKeys, again.SSHKeys, errs)
		}
	})
}

// FuzzTokenCheck holds what passes the check of tokens against the scopes.
func FuzzTokenCheck(f *testing.F) {
	f.Add("ci", "read,admin", true)
	f.Add(" ", "catalog:write", false)
	f.Add("x\n", "", true)
	f.Fuzz(func(t *testing.T, name, scopes string, admin bool) {
		token := loom.Token{Name: name}
		for _, s := range strings.Split(scopes, ",") {
			token.Scopes = append(token.Scopes, loom.Scope(s))
		}
		asked := slices.Clone(token.Scopes)
		if errs := checkToken(&token, admin); len(errs) > 0 {
			return
		}
		for _, s := range token.Scopes {
			if !slices.Contains(loom.Scopes, s) || !slices.Contains(asked, s) || s == loom.ScopeCatalogWrite && !admin {
				t.Errorf("the scope %q of %q passed", s, asked)
			}
		}
		if len(token.Scopes) == 0 || len(token.Scopes) > len(loom.Scopes) || token.Name == "" || strings.ContainsRune(token.Name, 0) {
			t.Errorf("%+v passed", token)
		}
		shown := shownToken(loom.Token{Name: name, Scopes: token.Scopes, Expires: time.UnixMilli(5)})
		if shown["expires"] != int64(5) {
			t.Errorf("shown %v", shown)
		}
	})
}
