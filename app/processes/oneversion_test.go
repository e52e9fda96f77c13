package processes_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// TestProbeReadsOneVersion: while two administrators save addresses with their secrets, no
// probe has the address of one and the secret of the other.
func TestProbeReadsOneVersion(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	stop := make(chan struct{})
	var saving sync.WaitGroup
	saving.Go(func() {
		for version := 2; ; version++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprint("host-", version)
			sealed, err := a.ring.Seal("t1", "provider:lab", "pin", loom.NewSecret("secret of "+name))
			if err != nil {
				t.Error(err)
				return
			}
			err = store.Exec(a.ctx, a.db.DB, func(tx *sqlx.Tx) error {
				p := &loom.Provider{Base: loom.Base{Name: "lab", Version: version}, Type: "lab", Fields: map[string]any{"address": name}, Sealed: []string{"pin"}}
				if _, err := store.InsertCatalogVersion(a.ctx, tx, "t1", loom.KindProvider, p, "admin"); err != nil {
					return err
				}
				return store.PutSecrets(a.ctx, tx, "t1", "provider:lab", "admin", map[string][]byte{"pin": sealed})
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	c := &cloud{probe: loom.Probe{OK: true}}
	seen := map[any]bool{}
	for n := 0; n < 100 || len(seen) < 3; n++ {
		id, err := store.InTx(a.ctx, a.db.DB, func(tx *sqlx.Tx) (int64, error) {
			return store.InsertRequest(a.ctx, tx, "t1", store.ProviderRequest{Provider: "lab", Purpose: store.PurposeProbe, By: "admin"})
		})
		a.must(err)
		a.must(a.WorkRequest(context.WithoutCancel(a.ctx), a.process, id, c))
		seen[c.calls[len(c.calls)-1].Provider.Fields["address"]] = true
	}
	close(stop)
	saving.Wait()
	for _, call := range c.calls {
		address, _ := call.Provider.Fields["address"].(string)
		if secret := call.Provider.Fields["pin"]; address != "" && secret != "secret of "+address {
			t.Fatalf("a probe has %q for %s", secret, address)
		}
	}
}
