package cli

import (
	"context"
	"fmt"

	"loom/app/account"
	"loom/app/loom"
)

// runUser shows the generated sign-ins that nobody has used yet, makes a user, sets a new
// password, or forgets wrong ones. Passwords are generated and printed alone.
func runUser(ctx context.Context, e *environment, args []string) error {
	tenant, args, hasTenant := takeFlag(args, "tenant")
	role, args, hasRole := takeFlag(args, "role")
	list := !hasTenant && !hasRole && (len(args) == 0 || len(args) == 1 && args[0] == "list")
	verb := ""
	if len(args) == 2 {
		verb = args[0]
	}
	switch {
	case !list && verb != "create" && (verb != "password" && verb != "unlock" || hasRole):
		return usageError("loom user [list], loom user create USER --tenant NAME [--role admin], loom user password USER --tenant NAME, or loom user unlock USER --tenant NAME")
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
	if verb == "unlock" {
		return s.accounts.Unlock(ctx, tenant, loom.UserID(args[1]))
	}
	made := account.MadeUser{Tenant: tenant, User: loom.UserID(args[1]), Role: loom.Role(role)}
	if verb == "create" {
		made.Password, err = s.accounts.CreateUserIn(ctx, tenant, made.User, made.Role)
	} else {
		made.Password, err = s.accounts.SetPassword(ctx, tenant, made.User, loom.Secret{})
	}
	if err != nil {
		return err
	}
	if err := e.keepSignIns(ctx, []account.MadeUser{made}); err != nil {
		return err
	}
	fmt.Fprintln(e.out, made.Password.Reveal())
	return nil
}
