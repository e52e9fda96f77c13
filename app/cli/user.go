package cli

import (
	"context"
	"fmt"

	"loom/app/account"
	"loom/app/loom"
)

// runUser shows the made-up sign-ins that still hold, makes a user, or sets a new
// password. Passwords are made up and printed alone.
func runUser(ctx context.Context, e *environment, args []string) error {
	tenant, args, hasTenant := takeFlag(args, "tenant")
	role, args, hasRole := takeFlag(args, "role")
	list := !hasTenant && !hasRole && (len(args) == 0 || len(args) == 1 && args[0] == "list")
	create := len(args) == 2 && args[0] == "create"
	switch {
	case !list && !create && (len(args) != 2 || args[0] != "password" || hasRole):
		return usageError("loom user [list], loom user create USER --tenant NAME [--role admin], or loom user password USER --tenant NAME")
	case !list && tenant == "":
		return usageError("loom user %s %s --tenant NAME: the tenant is missing", args[0], args[1])
	case hasRole && role != string(loom.RoleUser) && role != string(loom.RoleAdmin):
		return usageError("--role takes user or admin, not “%s”", role)
	}
	s, err := e.system(ctx)
	if err != nil {
		return err
	}
	if list {
		return e.printSignIns(ctx, s, e.out)
	}
	made := account.MadeUser{Tenant: tenant, User: loom.UserID(args[1]), Role: loom.Role(role)}
	if create {
		made.Password, err = s.accounts.CreateUserIn(ctx, tenant, made.User, made.Role)
	} else {
		made.Password, err = s.accounts.SetPassword(ctx, tenant, made.User, loom.Secret{})
	}
	if err != nil {
		return err
	}
	if err := e.keepSignIns([]account.MadeUser{made}); err != nil {
		return err
	}
	fmt.Fprintln(e.out, made.Password.Reveal())
	return nil
}
