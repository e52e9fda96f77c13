package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

// runToken makes a token and prints nothing but its secret.
func runToken(ctx context.Context, e *environment, args []string) error {
	tenant, args, _ := wiring.TakeFlag(args, "tenant")
	scopes, args, _ := wiring.TakeFlag(args, "scope")
	expires, args, _ := wiring.TakeFlag(args, "expires")
	name, args, _ := wiring.TakeFlag(args, "name")
	if len(args) != 2 || args[0] != "create" || tenant == "" || scopes == "" {
		return wiring.UsageError("loom token create USER --tenant NAME --scope SCOPE[,SCOPE] [--expires 90d] [--name TEXT]")
	}
	in := account.NewToken{Name: name}
	if in.Name == "" {
		in.Name = "command line"
	}
	for _, text := range strings.Split(scopes, ",") {
		scope := loom.Scope(strings.TrimSpace(text))
		if !slices.Contains(loom.Scopes, scope) {
			return wiring.UsageError("there is no scope “%s”; scopes are read, clusters:write, catalog:write, admin", scope)
		}
		in.Scopes = append(in.Scopes, scope)
	}
	if expires == "" {
		expires = "90d"
	}
	life, err := parseDays(expires)
	if err != nil {
		return err
	}
	until := time.Now().Add(life)
	in.Expires = &until
	s, err := e.System(ctx)
	if err != nil {
		return err
	}
	_, secret, err := s.Accounts.CreateTokenFor(ctx, wiring.CliActor(), tenant, loom.UserID(args[1]), in)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.Out, secret.Reveal())
	return nil
}

// parseDays reads a duration that may be in days: "90d", "12h".
func parseDays(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n <= 0 || n > 36500 {
			return 0, wiring.UsageError("“%s” is no duration; write 90d or 12h", text)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, wiring.UsageError("“%s” is no duration; write 90d or 12h", text)
	}
	return d, nil
}
