package cli

import (
	"context"
	"fmt"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

type auditCmd struct {
	Verify auditVerify `cmd:"" help:"Verify the audit log."`
}

type auditVerify struct {
	Expect string `placeholder:"NUMBER:MAC" help:"An entry that must be in the chain. The log has one an hour (“newest entry of the audit chain”)."`
}

// Run recomputes the chain of the audit log.
func (c *auditVerify) Run(ctx context.Context, e *wiring.Environment) error {
	var mark account.AuditMark
	if c.Expect != "" {
		var err error
		if mark, err = account.ParseAuditMark(c.Expect); err != nil {
			return &exitStatus{exitUsage, err}
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
