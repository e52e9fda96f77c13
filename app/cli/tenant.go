package cli

import (
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"

	"loom/app/account"
	"loom/app/loom"
)

// runTenant lists tenants, or makes one by bootstrap.
func runTenant(ctx context.Context, e *environment, args []string) error {
	workers, args, hasWorkers := takeFlag(args, "workers")
	list := !hasWorkers && (len(args) == 0 || len(args) == 1 && args[0] == "list")
	if !list && (len(args) != 2 || args[0] != "create") {
		return usageError("loom tenant [list], or loom tenant create NAME [--workers N]")
	}
	in := account.TenantInput{Bootstrap: true}
	if hasWorkers {
		n, err := strconv.Atoi(workers)
		if err != nil || n < 0 {
			return usageError("--workers takes a whole number, not “%s”", workers)
		}
		in.Workers = &n
	}
	s, err := e.system(ctx)
	if err != nil {
		return err
	}
	if list {
		return e.listTenants(ctx, s)
	}
	in.Name = args[1]
	tenant, password, err := s.accounts.CreateTenantWithSignIn(ctx, cliActor(), in)
	if err != nil {
		return err
	}
	made := account.MadeUser{Tenant: tenant.Name, User: loom.AdminUser, Password: password}
	if err := e.keepSignIns(ctx, []account.MadeUser{made}); err != nil {
		return err
	}
	fmt.Fprintf(e.out, "tenant %s with user admin, password %s\n", tenant.Name, password.Reveal())
	return nil
}

func (e *environment) listTenants(ctx context.Context, s *system) error {
	tenants, err := s.accounts.Tenants(ctx, cliActor())
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tworkers\tdescription")
	for _, tenant := range tenants {
		fmt.Fprintf(t, "%s\t%d\t%s\n", tenant.Name, tenant.Workers, tenant.Description)
	}
	return t.Flush()
}
