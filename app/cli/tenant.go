package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

type tenantCmd struct {
	List   tenantList   `cmd:"" default:"1" help:"List tenants."`
	Create tenantCreate `cmd:"" help:"Create a tenant with its administrator, print the generated password."`
}

type tenantCreate struct {
	Name    string `arg:"" help:"Name of the tenant."`
	Workers uint   `placeholder:"N" default:"0" help:"Number of tasks that run at once for the tenant; as many must be free [0]."`
}

// Run creates a tenant by bootstrap.
func (c *tenantCreate) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	workers := int(c.Workers)
	tenant, password, err := s.Accounts.CreateTenantWithSignIn(ctx, wiring.CliActor(), account.TenantInput{Name: c.Name, Workers: &workers, Bootstrap: true})
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

type tenantList struct{}

// Run lists tenants.
func (tenantList) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
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
