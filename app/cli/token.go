package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

type tokenCmd struct {
	Create tokenCreate `cmd:"" help:"Create an API token and print only that."`
}

type tokenCreate struct {
	userOf
	Scope   []loom.Scope `required:"" enum:"read,clusters:write,catalog:write,admin" placeholder:"SCOPE" help:"What the token may do: read, clusters:write, catalog:write, admin (all that the user may)."`
	Expires lifetime     `default:"90d" placeholder:"TIME" help:"Lifetime in days or hours: 90d, 12h [90d]."`
	Name    string       `default:"command line" placeholder:"TEXT" help:"What the token is for, shown in lists of tokens and the audit log [command line]."`
}

// Run creates a token and prints nothing but its secret.
func (c *tokenCreate) Run(ctx context.Context, e *wiring.Environment) error {
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(c.Expires))
	_, secret, err := s.Accounts.CreateTokenFor(ctx, wiring.CliActor(), c.Tenant, c.User, account.NewToken{Name: c.Name, Scopes: c.Scope, Expires: &until})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.Out, secret.Reveal())
	return err
}

// lifetime is a duration that may be in days: "90d", "12h".
type lifetime time.Duration

// UnmarshalText reads a lifetime.
func (l *lifetime) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(min(n, 36501)) * 24 * time.Hour
	}
	if err != nil || d <= 0 || d > 36500*24*time.Hour {
		return fmt.Errorf("“%s” is no duration; write 90d or 12h", text)
	}
	*l = lifetime(d)
	return nil
}
