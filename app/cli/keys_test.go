package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/config"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
	"loom/app/wiring"
)

// keyBed is an instance whose keys are in its data directory.
type keyBed struct {
	t   *testing.T
	db  *testkit.Database
	dir string
	env []string
}

func newKeyBed(t *testing.T, options ...string) *keyBed {
	b := &keyBed{t: t, db: testkit.NewDatabase(t), dir: t.TempDir()}
	b.env = append([]string{"PATH=" + os.Getenv("PATH"), "LOOM_DATABASE_URL=" + b.db.DSN, "LOOM_DATA_DIR=" + b.dir, "LOOM_LOG_FORMAT=text"}, options...)
	return b
}

// loom runs a subcommand and gives what it said.
func (b *keyBed) loom(code int, args ...string) string {
	b.t.Helper()
	var out bytes.Buffer
	if got := run(args, b.env, nil, &out, &out); got != code {
		b.t.Fatalf("loom %s: exit status %d, want %d:\n%s", strings.Join(args, " "), got, code, out.String())
	}
	return out.String()
}

// process is an instance's use cases, as a process of its own has them.
func (b *keyBed) process() *wiring.System {
	b.t.Helper()
	values, err := config.Load(nil, b.env)
	if err != nil {
		b.t.Fatal(err)
	}
	e := &wiring.Environment{Values: values, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Out: io.Discard, ErrOut: io.Discard}
	b.t.Cleanup(e.Close)
	s, err := e.System(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// seal stores a value of the tenant superadmin, as a use case does.
func (b *keyBed) seal(s *wiring.System, field string) {
	b.t.Helper()
	sealed, err := s.Ring.Seal(loom.SuperTenant, "provider:lab", field, loom.NewSecret("value of "+field))
	if err == nil {
		err = store.Exec(context.Background(), b.db.DB, func(tx *sqlx.Tx) error {
			if err := store.EnsureSuperTenant(context.Background(), tx); err != nil {
				return err
			}
			return store.PutSecrets(context.Background(), tx, loom.SuperTenant, "provider:lab", "x", map[string][]byte{field: sealed})
		})
	}
	if err != nil {
		b.t.Error(err)
	}
}

// opens checks every stored value, and gives how many there are under each key.
func (b *keyBed) opens(s *wiring.System) map[secret.KeyID]int {
	b.t.Helper()
	stored, err := store.Secrets(context.Background(), b.db, loom.SuperTenant, "provider:lab")
	if err != nil {
		b.t.Fatal(err)
	}
	keys := map[secret.KeyID]int{}
	for field, sealed := range stored {
		plain, err := s.Ring.Open(loom.SuperTenant, "provider:lab", field, sealed)
		if err != nil || plain.Reveal() != "value of "+field {
			b.t.Errorf("%s opens as %q, %v", field, plain.Reveal(), err)
		}
		id, _ := secret.KeyOf(sealed)
		keys[id]++
	}
	return keys
}

func (b *keyBed) keyFile() string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, wiring.KeyFile))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestRotationWhileOthersWrite: values that another process writes meanwhile are
// not lost, and in the end everything is under the new key.
func TestRotationWhileOthersWrite(t *testing.T) {
	t.Parallel()
	b := newKeyBed(t)
	other := b.process()
	first := other.Ring.First()
	resource := loom.ResourceRef{Kind: "providertypes", Plugin: "vault", Type: "ssh_keys", Name: "mine"}
	err := other.Catalog.RegisterTypes(context.Background(), []loom.PluginType{{Base: loom.Base{Name: "vault"},
		ResourceTypes: map[string]loom.ResourceType{"ssh_keys": {Format: "file", Permissions: "0400"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	uploaded, err := other.Catalog.Upload(context.Background(), wiring.CliActor(), resource, strings.NewReader("a private key"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 450 {
		b.seal(other, fmt.Sprintf("f%d", i))
	}
	var stop atomic.Bool
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := 0; !stop.Load(); i++ {
				b.seal(other, fmt.Sprintf("f%d", (i*7+w)%600)) // old ones again, and new ones
			}
		})
	}
	said := b.loom(0, "keys", "rotate")
	stop.Store(true)
	writers.Wait()
	ids := other.Ring.IDs()
	if len(ids) != 2 || ids[0] == first || ids[1] != first || !strings.Contains(said, "made key "+ids[0].String()) || !strings.Contains(said, "1 resources") {
		t.Fatalf("keys %v, said\n%s", ids, said)
	}
	if keys := b.opens(other); len(keys) != 1 || keys[ids[0]] < 450 {
		t.Errorf("values by key: %v, the new key is %s", keys, ids[0])
	}
	fresh := b.process() // has only ever seen the new file
	b.opens(fresh)
	content, err := fresh.Catalog.Open(context.Background(), uploaded)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(content); err != nil || string(text) != "a private key" {
		t.Errorf("the resource is %q, %v", text, err)
	}
	list := b.loom(0, "keys", "list")
	if lines := strings.Split(list, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[1], ids[0].String()) || !strings.Contains(lines[1], "seals") || !strings.HasPrefix(lines[2], first.String()) {
		t.Errorf("list:\n%s", list)
	}
	if info, err := os.Stat(filepath.Join(b.dir, wiring.KeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestRotationGoesOn: one that was broken off is finished with the key that it
// made; the next makes another.
func TestRotationGoesOn(t *testing.T) {
	t.Parallel()
	b := newKeyBed(t)
	s := b.process()
	for i := range 5 {
		b.seal(s, fmt.Sprintf("f%d", i))
	}
	// As a rotation leaves it that ends right after storing its key.
	half := secret.GenerateKey() + "," + b.keyFile()
	if err := wiring.ReplaceFile(filepath.Join(b.dir, wiring.KeyFile), []byte(half)); err != nil {
		t.Fatal(err)
	}
	b.seal(s, "f0") // with the new key already
	if said := b.loom(0, "keys", "rotate"); !strings.Contains(said, "Continuing") || !strings.Contains(said, "sealed again: 4 values") || b.keyFile() != half {
		t.Errorf("said\n%s", said)
	}
	if keys := b.opens(s); keys[s.Ring.First()] != 5 {
		t.Errorf("values by key: %v", keys)
	}
	if said := b.loom(0, "keys", "rotate"); !strings.Contains(said, "sealed again: 5 values") || len(s.Ring.IDs()) != 3 {
		t.Errorf("said\n%s", said)
	}
}

// TestRotationWithKeysOfTheConfiguration: the first key of the list is the one;
// what no key opens is named and left as it is.
func TestRotationWithKeysOfTheConfiguration(t *testing.T) {
	t.Parallel()
	old, newer, lost := secret.GenerateKey(), secret.GenerateKey(), secret.GenerateKey()
	b := newKeyBed(t, "LOOM_SECRET_KEY="+lost)
	b.seal(b.process(), "gone")
	b.env[len(b.env)-1] = "LOOM_SECRET_KEY=" + old
	b.seal(b.process(), "kept")
	b.env[len(b.env)-1] = "LOOM_SECRET_KEY=" + newer + "," + old
	said := b.loom(1, "keys", "rotate")
	if !strings.Contains(said, "sealed again: 1 values") || !strings.Contains(said, "gone of provider:lab in tenant superadmin") || strings.Contains(said, "kept of") {
		t.Errorf("said\n%s", said)
	}
	if list := b.loom(1, "keys", "list"); !strings.Contains(list, "missing") || strings.Contains(list, newer) {
		t.Errorf("list:\n%s", list)
	}
	b.env[len(b.env)-1] = "LOOM_SECRET_KEY=" + newer + "," + lost
	if said := b.loom(0, "keys", "rotate"); !strings.Contains(said, "sealed again: 1 values") {
		t.Errorf("said\n%s", said)
	}
	if _, err := os.Stat(filepath.Join(b.dir, wiring.KeyFile)); err == nil {
		t.Error("a file of keys was made beside LOOM_SECRET_KEY")
	}
	b.loom(2, "keys")
	b.loom(2, "keys", "remove")
}

func TestAuditVerify(t *testing.T) {
	t.Parallel()
	b := newKeyBed(t)
	s := b.process()
	ctx := context.Background()
	if _, err := s.Accounts.EnsureSuperadmin(ctx); err != nil {
		t.Fatal(err)
	}
	if said := b.loom(0, "audit", "verify"); !strings.Contains(said, "1 newer entries are not linked yet") {
		t.Errorf("said\n%s", said)
	}
	poll := func() bool {
		if err := s.Accounts.LinkAudit(ctx); err != nil {
			t.Fatal(err)
		}
		waiting, err := store.UnlinkedAuditAllTenants(ctx, b.db)
		return err == nil && !waiting
	}
	for tries := 0; !poll() && tries < 400; tries++ { // other databases of the server have open transactions too
		if _, err := b.db.Exec(`SELECT pg_sleep(0.05)`); err != nil {
			t.Fatal(err)
		}
	}
	said := b.loom(0, "audit", "verify")
	_, mark, ok := strings.Cut(strings.TrimSpace(said), "newest ")
	if !ok || !strings.Contains(said, "numbers 1 to 1") {
		t.Fatalf("said\n%s", said)
	}
	b.loom(0, "keys", "rotate") // the entry stays under the key of before
	b.loom(0, "audit", "verify", "--expect", mark)
	for _, c := range []struct{ do, says string }{
		{`UPDATE audit SET actor = 'nobody'`, "number 1 of the chain, was changed"},
		{`DELETE FROM audit`, "the end was cut off"},
	} {
		if _, err := b.db.Exec(c.do); err != nil {
			t.Fatal(err)
		}
		if said := b.loom(1, "audit", "verify"); !strings.Contains(said, c.says) {
			t.Errorf("%s: said\n%s", c.do, said)
		}
	}
	b.loom(2, "audit", "verify", "--expect", "12")
	b.loom(2, "audit")
}
