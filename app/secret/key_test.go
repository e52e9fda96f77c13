package secret_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"loom/app/loom"
	"loom/app/secret"
)

// write replaces a file of keys as a whole.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestARingFollowsItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	old, newer := secret.GenerateKey(), secret.GenerateKey()
	write(t, path, old+"\n")
	var warned error
	r, err := secret.OpenFile(path, func(err error) { warned = err })
	if err != nil {
		t.Fatal(err)
	}
	before, err := r.Seal(tenant, entity, field, loom.NewSecret("one"))
	if err != nil {
		t.Fatal(err)
	}
	// Somebody else already seals with a key that this ring has not seen.
	write(t, path, newer+","+old)
	theirs, err := ring(t, newer, old).Seal(tenant, entity, field, loom.NewSecret("two"))
	if err != nil {
		t.Fatal(err)
	}
	for sealed, want := range map[*[]byte]string{&theirs: "two", &before: "one"} {
		if got, err := r.Open(tenant, entity, field, *sealed); err != nil || got.Reveal() != want {
			t.Errorf("opens as %q, %v; want %q", got.Reveal(), err, want)
		}
	}
	again, err := r.Seal(tenant, entity, field, loom.NewSecret("three"))
	if id, ok := secret.KeyOf(again); err != nil || !ok || id != ring(t, newer).First() || id != r.First() {
		t.Errorf("sealed with %s, %v", id, err)
	}
	// A file that cannot be read takes nothing away.
	write(t, path, "no key")
	if _, err := r.Seal(tenant, entity, field, loom.NewSecret("four")); err != nil || warned == nil {
		t.Errorf("with a broken file: %v, warned %v", err, warned)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Open(tenant, entity, field, again); err != nil || got.Reveal() != "three" {
		t.Errorf("without the file: %v", err)
	}
	if _, err := secret.OpenFile(path, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a ring of no file: %v", err)
	}
}

func TestManyUseARingWhileItsFileChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	keys := secret.GenerateKey()
	write(t, path, keys)
	r, err := secret.OpenFile(path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for range 300 {
				sealed, err := r.SealBytes("place", []byte("content"))
				if err != nil {
					t.Error(err)
					return
				}
				if plain, err := r.OpenBytes("place", sealed); err != nil || string(plain) != "content" {
					t.Errorf("opens as %q, %v", plain, err)
				}
			}
		})
	}
	for range 20 {
		keys = secret.GenerateKey() + "," + keys
		write(t, path, keys)
	}
	users.Wait()
	if n := len(r.IDs()); n != 21 {
		t.Errorf("%d keys", n)
	}
}

func TestCodesBelongToTheirKey(t *testing.T) {
	t.Parallel()
	old, newer := secret.GenerateKey(), secret.GenerateKey()
	both, one := ring(t, newer, old), ring(t, old)
	id := one.First()
	x, err := both.MAC(id, []byte("a"), []byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	y, err := one.MAC(id, []byte("ab"))
	if err != nil || !bytes.Equal(x, y) || len(x) != 32 {
		t.Errorf("%x and %x, %v", x, y, err)
	}
	z, err := both.MAC(both.First(), []byte("ab"))
	if err != nil || bytes.Equal(x, z) {
		t.Errorf("another key gives the same code, %v", err)
	}
	if _, err := one.MAC(both.First(), nil); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("an unknown key: %v", err)
	}
	if parsed, ok := secret.ParseKeyID(id.String()); !ok || parsed != id {
		t.Errorf("%s reads as %s", id, parsed)
	}
	for _, text := range []string{"", "zz", id.String()[2:], id.String() + "00"} {
		if _, ok := secret.ParseKeyID(text); ok {
			t.Errorf("%q is taken for an id", text)
		}
	}
}
