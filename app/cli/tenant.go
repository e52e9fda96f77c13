package cli

import (
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

// runTenant lists tenants, or makes one by bootstrap.
func runTenant(ctx context.Context, e *environment, args []string) error {
	workers, args, hasWorkers := wiring.TakeFlag(args, "workers")
	list := !hasWorkers && (len(args) == 0 || len(args) == 1 && args[0] == "list")
	if !list && (len(args) != 2 || args[0] != "create") {
		return wiring.UsageError("loom tenant [list], or loom tenant create NAME [--workers N]")
	}
	in := account.TenantInput{Bootstrap: true}
	if hasWorkers {
		n, err := strconv.Atoi(workers)
		if err != nil || n < 0 {
			return wiring.UsageError("--workers takes a whole number, not “%s”", workers)
		}
		in.Workers = &n
	}
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	if list {
		return e.listTenants(ctx, s)
	}
	in.Name = args[1]
	tenant, password, err := s.Accounts.CreateTenantWithSignIn(ctx, wiring.CliActor(), in)
	if err != nil {
		return err
	}
	made := account.MadeUser{Tenant: tenant.Name, User: loom.AdminUser, Password: password}
	if err := e.KeepSignIns(ctx, []account.MadeUser{made}); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "tenant %s with user admin, password %s\n", tenant.Name, password.Reveal())
	return nil
}

func (e *environment) listTenants(ctx context.Context, s *wiring.System) error {
	tenants, err := s.Accounts.Tenants(ctx, wiring.CliActor())
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tworkers\tdescription")
	for _, tenant := range tenants {
		fmt.Fprintf(t, "%s\t%d\t%s\n", tenant.Name, tenant.Workers, tenant.Description)
	}
	return t.Flush()
}
