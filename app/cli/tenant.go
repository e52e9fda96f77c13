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
	workers, args, _ := takeFlag(args, "workers")
	s, err := e.system(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 0 || len(args) == 1 && args[0] == "list":
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
	case len(args) == 2 && args[0] == "create":
		in := account.TenantInput{Name: args[1], Bootstrap: true}
		if workers != "" {
			if in.Workers, err = strconv.Atoi(workers); err != nil || in.Workers < 0 {
				return usageError("--workers takes a whole number, not “%s”", workers)
			}
		}
		tenant, err := s.accounts.CreateTenant(ctx, cliActor(), in)
		if err != nil {
			return err
		}
		actor := cliActor()
		actor.Tenant, actor.TenantName = tenant.ID, tenant.Name
		_, password, err := s.accounts.CreateUser(ctx, actor, account.UserInput{ID: loom.AdminUser, Role: loom.RoleAdmin})
		if err != nil {
			return err
		}
		made := account.MadeUser{Tenant: tenant.Name, User: loom.AdminUser, Password: password}
		if err := e.keepSignIns([]account.MadeUser{made}); err != nil {
			return err
		}
		fmt.Fprintf(e.out, "tenant %s with user admin, password %s\n", tenant.Name, password.Reveal())
		return nil
	}
	return usageError("loom tenant [list], or loom tenant create NAME [--workers N]")
}
