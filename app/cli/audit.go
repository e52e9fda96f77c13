package cli

import (
	"context"
	"fmt"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

// runAudit recomputes the chain of the audit.
func runAudit(ctx context.Context, e *environment, args []string) error {
	expect, args, expects := wiring.TakeFlag(args, "expect")
	if len(args) != 1 || args[0] != "verify" {
		return wiring.UsageError("loom audit verify [--expect NUMBER:MAC]")
	}
	var mark account.AuditMark
	if expects {
		var err error
		if mark, err = account.ParseAuditMark(expect); err != nil {
			return fmt.Errorf("%w: %w", wiring.ErrUsage, err)
		}
	}
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	r, err := s.Accounts.VerifyAudit(ctx, mark)
	if err != nil {
		return err
	}
	if r.Broken != "" {
		return loom.NewError(loom.Conflict, "The audit is not as it was written: %s.", r.Broken)
	}
	if r.Entries == 0 {
		fmt.Fprintf(e.Out, "the audit chain has no entries behind number %d\n", r.First-1)
	} else {
		fmt.Fprintf(e.Out, "%d entries are as they were written, numbers %d to %d\nnewest %s\n", r.Entries, r.First, r.Newest.Number, r.Newest)
	}
	if r.Waiting > 0 {
		fmt.Fprintf(e.Out, "%d newer entries are not linked yet; a scheduler does that once a second\n", r.Waiting)
	}
	return nil
}
