package cli

import (
	"context"
	"fmt"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

type userCmd struct {
	List     userList     `cmd:"" default:"1" help:"List unused generated sign-ins."`
	Create   userCreate   `cmd:"" help:"Create a user and print only the generated password."`
	Password userPassword `cmd:"" help:"Set a new password and print only that."`
	Unlock   userUnlock   `cmd:"" help:"Forget wrong passwords, so that the user can sign in again."`
}

// userOf names a user.
type userOf struct {
	User   loom.UserID `arg:"" help:"Name of the user."`
	Tenant string      `required:"" placeholder:"NAME" help:"Tenant of the user."`
}

type userList struct{}

// Run lists sign-ins.
func (userList) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	return e.PrintSignIns(ctx, s, e.Out)
}

type userCreate struct {
	userOf
	Role loom.Role `enum:"user,admin," default:"" placeholder:"ROLE" help:"user or admin [user; admin for the user admin]."`
}

// Run creates a user.
func (c *userCreate) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	password, err := s.Accounts.CreateUserIn(ctx, c.Tenant, c.User, c.Role)
	if err != nil {
		return err
	}
	return c.print(ctx, e, account.MadeUser{Role: c.Role, Password: password})
}

type userPassword struct{ userOf }

// Run sets a generated password.
func (c *userPassword) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	password, err := s.Accounts.SetPassword(ctx, c.Tenant, c.User, loom.Secret{})
	if err != nil {
		return err
	}
	return c.print(ctx, e, account.MadeUser{Password: password})
}

// print prints a new password and stores it for the list of sign-ins.
func (c *userOf) print(ctx context.Context, e *wiring.Environment, made account.MadeUser) error {
	made.Tenant, made.User = c.Tenant, c.User
	if err := e.KeepSignIns(ctx, []account.MadeUser{made}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Out, made.Password.Reveal())
	return err
}

type userUnlock struct{ userOf }

// Run unlocks a user.
func (c *userUnlock) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	return s.Accounts.Unlock(ctx, c.Tenant, c.User)
}
