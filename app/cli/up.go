package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/wiring"
	"loom/migrations"
)

// upDrain is how long tasks may still run after Ctrl-C. It is short: interrupted
// ones continue at the next start.
const upDrain = 3 * time.Second

type upCmd struct{}

// Run starts everything in one process and ends with ctx. Machines and the
// private database keep running, as those of a cloud would.
func (upCmd) Run(ctx context.Context, e *wiring.Environment) error {
	dir, err := e.DataDir()
	if err != nil {
		return err
	}
	release, err := wiring.ClaimInstance(ctx, dir)
	if err != nil {
		return err
	}
	defer release()
	if _, err := e.TakeAddress(); err != nil {
		return err
	}
	e.MakesInstance = true
	dsn, err := e.Database(ctx)
	if err != nil {
		return err
	}
	if err := migrations.Up(ctx, dsn); err != nil {
		return err
	}
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	e.CheckStore(ctx, s)
	if err := e.FirstStart(ctx, s); err != nil {
		return err
	}
	p, err := e.Plugins()
	if err != nil {
		return err
	}
	s.Health.Expect(loom.ProcessWeb, loom.ProcessScheduler, loom.ProcessProvisioner)
	site, err := e.Listen(ctx, s)
	if err != nil {
		return err
	}
	worker, done, err := e.Provisioner(ctx, s, p, 0)
	if err != nil {
		return err
	}
	defer done()
	worker.DrainTimeout = upDrain

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := map[string]func(context.Context) error{
		"web": site.Serve, "scheduler": e.Scheduler(s, 0).Run, "provisioner": worker.Run,
	}
	ended := make(chan error, len(parts))
	for name, part := range parts {
		go func() {
			err := part(ctx)
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			cancel(err) // one that ends takes the others along
			ended <- err
		}()
	}
	welcome(ctx, e, s, site.URL)
	go prepareBases(ctx, e, s, p)
	var errs []error
	for range parts {
		errs = append(errs, <-ended)
	}
	if ctx.Err() != nil {
		fmt.Fprintln(e.Out, "\nLoom has ended. Machines and the private database go on; `make stop` stops them.")
	}
	return errors.Join(errs...)
}

// welcome prints the URL and the sign-ins.
func welcome(ctx context.Context, e *wiring.Environment, s *wiring.System, url string) {
	// One write: lines of the log do not get in between.
	var text strings.Builder
	fmt.Fprintf(&text, "\nLoom is ready: %s\n\n", url)
	if err := e.PrintSignIns(ctx, s, &text); err != nil {
		e.Log.Warn("cannot show the sign-ins", "error", err.Error())
	}
	fmt.Fprintf(&text, "\nThe superadmin signs in at %s/login?tenant=superadmin\n", url)
	text.WriteString("\nThen choose New cluster, the template “Load-balanced web cluster” and 3 nodes.\n" +
		"Ctrl-C ends Loom and leaves machines running.\n\n")
	fmt.Fprint(e.Out, text.String())
}

// prepareBases builds the base roots of the starter image types, so that the
// first cluster need not wait for them; one requested before waits for the same
// build.
func prepareBases(ctx context.Context, e *wiring.Environment, s *wiring.System, p *wiring.Plugins) {
	if p.Local.Ready() != nil {
		return
	}
	images, err := s.StarterImages(ctx)
	if err != nil {
		e.Log.Warn("cannot tell which base roots will be needed", "error", err.Error())
		return
	}
	began := time.Now()
	said := false
	err = p.Local.Prepare(ctx, images, func(line string) {
		if !said {
			fmt.Fprintf(e.Out, "Building the base root of local machines (%s); the first time this takes a minute or two.\n", strings.Join(images, "; "))
			said = true
		}
		e.Log.Debug("base root", "line", line)
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		fmt.Fprintf(os.Stderr, "The base root could not be built: %v\n", err)
	case said:
		fmt.Fprintf(e.Out, "The base root is built (%s).\n", time.Since(began).Round(time.Second))
	}
}
