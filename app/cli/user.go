package cli

import (
	"context"
	"fmt"
	"slices"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

// runUser shows the generated sign-ins that nobody has used yet, makes a user, sets a new
// password, or forgets wrong ones. Passwords are generated and printed alone.
func runUser(ctx context.Context, e *environment, args []string) error {
	tenant, args, hasTenant := wiring.TakeFlag(args, "tenant")
	role, args, hasRole := wiring.TakeFlag(args, "role")
	list := !hasTenant && !hasRole && (len(args) == 0 || len(args) == 1 && args[0] == "list")
	verb := ""
	if len(args) == 2 {
		verb = args[0]
	}
	switch {
	case !list && verb != "create" && (verb != "password" && verb != "unlock" || hasRole):
		return wiring.UsageError("loom user [list], loom user create USER --tenant NAME [--role admin], loom user password USER --tenant NAME, or loom user unlock USER --tenant NAME")
	case !list && tenant == "":
		return wiring.UsageError("loom user %s %s --tenant NAME: the tenant is missing", args[0], args[1])
	case hasRole && !slices.Contains(loom.StoredRoles, loom.Role(role)):
		return wiring.UsageError("--role takes user or admin, not “%s”", role)
	}
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	if list {
		return e.PrintSignIns(ctx, s, e.Out)
	}
	if verb == "unlock" {
		return s.Accounts.Unlock(ctx, tenant, loom.UserID(args[1]))
	}
	made := account.MadeUser{Tenant: tenant, User: loom.UserID(args[1]), Role: loom.Role(role)}
	if verb == "create" {
		made.Password, err = s.Accounts.CreateUserIn(ctx, tenant, made.User, made.Role)
	} else {
		made.Password, err = s.Accounts.SetPassword(ctx, tenant, made.User, loom.Secret{})
	}
	if err != nil {
		return err
	}
	if err := e.KeepSignIns(ctx, []account.MadeUser{made}); err != nil {
		return err
	}
	fmt.Fprintln(e.Out, made.Password.Reveal())
	return nil
}
