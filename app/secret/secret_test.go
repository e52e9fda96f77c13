package secret_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/secret"
)

const (
	tenant = loom.TenantID("7c0e2b1a-0000-4000-8000-000000000001")
	entity = "provider:lab"
	field  = "api_secret"
)

func ring(t *testing.T, keys ...string) *secret.Ring {
	t.Helper()
	r, err := secret.ParseKeys(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealedValuesOpenOnlyWhereTheyBelong(t *testing.T) {
	t.Parallel()
	r := ring(t, secret.GenerateKey())
	sealed, err := r.Seal(tenant, entity, field, loom.NewSecret("hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("hunter2")) {
		t.Fatal("the plain text is in the sealed value")
	}
	got, err := r.Open(tenant, entity, field, sealed)
	if err != nil || got.Reveal() != "hunter2" {
		t.Fatalf("Open = %q, %v", got.Reveal(), err)
	}
	for name, open := range map[string]func() (loom.Secret, error){
		"other tenant": func() (loom.Secret, error) { return r.Open("x", entity, field, sealed) },
		"other entity": func() (loom.Secret, error) { return r.Open(tenant, "provider:other", field, sealed) },
		"other field":  func() (loom.Secret, error) { return r.Open(tenant, entity, "api_user", sealed) },
		"parts shifted": func() (loom.Secret, error) {
			return r.Open(tenant, entity+field[:1], field[1:], sealed)
		},
	} {
		if s, err := open(); !errors.Is(err, secret.ErrBroken) || !s.IsZero() {
			t.Errorf("%s: opened as %q with error %v", name, s.Reveal(), err)
		}
	}
	if _, err := r.OpenBytes(entity, sealed); !errors.Is(err, secret.ErrBroken) {
		t.Errorf("a field opened as a file: %v", err)
	}
}

func TestSealingTwiceGivesDifferentBytes(t *testing.T) {
	t.Parallel()
	r := ring(t, secret.GenerateKey())
	a, _ := r.Seal(tenant, entity, field, loom.NewSecret("same"))
	b, _ := r.Seal(tenant, entity, field, loom.NewSecret("same"))
	if bytes.Equal(a, b) {
		t.Fatal("equal secrets give equal sealed values")
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	older, newer := secret.GenerateKey(), secret.GenerateKey()
	before := ring(t, older)
	sealed, err := before.Seal(tenant, entity, field, loom.NewSecret("kept"))
	if err != nil {
		t.Fatal(err)
	}
	during := ring(t, newer, older)
	got, err := during.Open(tenant, entity, field, sealed)
	if err != nil || got.Reveal() != "kept" {
		t.Fatalf("with both keys: %q, %v", got.Reveal(), err)
	}
	if id, ok := secret.KeyOf(sealed); !ok || id == during.First() || id != before.First() {
		t.Errorf("the value says that %s sealed it", id)
	}
	again, err := during.Seal(tenant, entity, field, got)
	if err != nil {
		t.Fatal(err)
	}
	after := ring(t, newer)
	if got, err := after.Open(tenant, entity, field, again); err != nil || got.Reveal() != "kept" {
		t.Errorf("after rotation: %q, %v", got.Reveal(), err)
	}
	if _, err := after.Open(tenant, entity, field, sealed); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("a value of the dropped key: %v, want ErrUnknownKey", err)
	}
}

func TestDamagedValuesAreRefused(t *testing.T) {
	t.Parallel()
	r := ring(t, secret.GenerateKey())
	sealed, err := r.SealBytes("a/b/c", []byte("content of a key file"))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := r.OpenBytes("a/b/c", sealed); err != nil || string(plain) != "content of a key file" {
		t.Fatalf("OpenBytes = %q, %v", plain, err)
	}
	for n := range len(sealed) {
		if _, err := r.OpenBytes("a/b/c", sealed[:n]); err == nil {
			t.Fatalf("opened when cut to %d of %d bytes", n, len(sealed))
		}
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := r.OpenBytes("a/b/c", changed); err == nil {
			t.Fatalf("opened with byte %d changed", i)
		}
	}
}

func TestParseKeys(t *testing.T) {
	t.Parallel()
	good := secret.GenerateKey()
	url := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, 32))
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"one":              {good, true},
		"two with blanks":  {good + " , " + url, true},
		"trailing comma":   {good + ",", true},
		"empty":            {"", false},
		"only commas":      {",,", false},
		"short":            {base64.StdEncoding.EncodeToString([]byte("short")), false},
		"no base64":        {"!!!", false},
		"one good one bad": {good + ",abc", false},
	} {
		r, err := secret.ParseKeys(c.text)
		if (err == nil) != c.ok || (r != nil) != c.ok {
			t.Errorf("%s: ring %v, error %v", name, r != nil, err)
		}
		if err != nil && !errors.Is(err, loom.Invalid) {
			t.Errorf("%s: error is not Invalid: %v", name, err)
		}
		if err != nil && c.text != "" && strings.Contains(err.Error(), strings.Trim(c.text, ", ")) && name != "only commas" {
			t.Errorf("%s: the error repeats the key", name)
		}
	}
}

func FuzzOpenNeverPanics(f *testing.F) {
	r, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		f.Fatal(err)
	}
	sealed, _ := r.Seal(tenant, entity, field, loom.NewSecret("x"))
	f.Add(sealed)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := r.Open(tenant, entity, field, data); err == nil && !bytes.Equal(data, sealed) {
			t.Errorf("forged value opened as %q", s.Reveal())
		}
	})
}
