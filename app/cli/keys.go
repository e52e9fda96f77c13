package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/wiring"
)

type keysCmd struct {
	List   keysList   `cmd:"" help:"List the sealing keys and what uses each."`
	Rotate keysRotate `cmd:"" help:"Seal everything with the first key. Creates a new one where Loom keeps the keys."`
}

type keysList struct{}

// Run lists the keys with what uses each. A key without sealed values and audit
// entries may go.
func (keysList) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	uses, err := s.Catalog.KeyUses(ctx)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "key\tdoes\tsealed values\tsealed resources\taudit entries")
	for i, id := range s.Ring.IDs() {
		does := "opens"
		if i == 0 {
			does = "seals"
		}
		u := uses[id.String()]
		delete(uses, id.String())
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\n", id, does, u.Values, u.Objects, u.Audit)
	}
	missing := slices.Sorted(maps.Keys(uses))
	for _, id := range missing {
		u, name := uses[id], id
		if name == "" {
			name = "(damaged)"
		}
		fmt.Fprintf(t, "%s\tmissing\t%d\t%d\t%d\n", name, u.Values, u.Objects, u.Audit)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(missing) > 0 {
		return loom.NewError(loom.Unavailable, "What is under a missing key cannot be opened; put the key back behind the others.")
	}
	return nil
}

type keysRotate struct{}

// Run seals everything with the first key, while the installation runs. Where the
// keys are in the data directory it creates a new first key, unless an earlier
// rotation is unfinished.
func (keysRotate) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	if e.Values.Text("LOOM_SECRET_KEY") == "" {
		unlock, err := newFirstKey(ctx, e, s)
		if err != nil {
			return err
		}
		defer unlock()
	}
	fmt.Fprintf(e.Out, "sealing everything with key %s\n", s.Ring.First())
	total, err := reseal(ctx, s.Catalog)
	fmt.Fprintf(e.Out, "sealed again: %d values, %d resources\n", total.Values, total.Objects)
	if err != nil {
		return fmt.Errorf("the rotation is not done, call it again: %w", err)
	}
	for _, lost := range total.Lost {
		fmt.Fprintln(e.ErrOut, "cannot be opened:", lost)
	}
	if len(total.Lost) > 0 {
		return loom.NewError(loom.Unavailable, "%d sealed values could not be opened and stay as they are; put the missing key back behind the others, or give the values again.", len(total.Lost))
	}
	fmt.Fprintln(e.Out, "Older keys stay: the audit is verified with them, and backups open with them. `loom keys list` says what hangs on each.")
	return nil
}

// reseal goes over everything until there is nothing left, and once more after a
// while: who began to seal with the former key has stored it by then.
func reseal(ctx context.Context, c *catalog.Catalog) (total catalog.Resealed, err error) {
	for waited := false; ; {
		pass, err := c.Reseal(ctx)
		total.Add(pass)
		if err != nil {
			return total, err
		}
		if pass.Left() {
			waited = false
			continue
		}
		if waited {
			return total, nil
		}
		select {
		case <-ctx.Done():
			return total, context.Cause(ctx)
		case <-time.After(secret.Settle):
			waited = true
		}
	}
}

// newFirstKey puts a new key in front of the file of keys, unless something is
// still sealed with another than the first: then that rotation continues. One
// rotation at a time holds the lock; unlock releases it.
func newFirstKey(ctx context.Context, e *wiring.Environment, s *wiring.System) (unlock func(), err error) {
	path, err := e.KeyPath()
	if err != nil {
		return nil, err
	}
	if unlock, err = wiring.LockFile(ctx, path+".lock"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	uses, err := s.Catalog.KeyUses(ctx)
	if err != nil {
		return nil, err
	}
	for id, u := range uses {
		if id != s.Ring.First().String() && u.Values+u.Objects > 0 {
			fmt.Fprintln(e.Out, "Continuing an unfinished rotation; no new key is created.")
			return unlock, nil
		}
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the sealing keys: %w", err)
	}
	text := secret.GenerateKey() + "," + strings.TrimSpace(string(old)) + "\n"
	if err := wiring.ReplaceFile(path, []byte(text)); err != nil {
		return nil, fmt.Errorf("store the new sealing key: %w", err)
	}
	fmt.Fprintf(e.Out, "made key %s, first in %s; back that file up\n", s.Ring.First(), path)
	return unlock, nil
}
