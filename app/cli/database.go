package cli

import (
	"context"
	"fmt"
	"strings"

	"loom/app/config"
	"loom/app/wiring"
	"loom/migrations"
)

func runMigrate(ctx context.Context, e *environment, args []string) error {
	args, markdown := wiring.TakeSwitch(args, "markdown")
	if markdown && len(args) == 0 {
		text, err := migrations.Markdown()
		if err == nil {
			_, err = fmt.Fprint(e.Out, text)
		}
		return err
	}
	verb := "up"
	if len(args) > 0 {
		verb = args[0]
	}
	if markdown || len(args) > 1 || verb != "up" && verb != "status" {
		return wiring.UsageError("loom migrate takes “up” or “status”, not “%s”", strings.Join(args, " "))
	}
	e.MakesInstance = verb == "up"
	dsn, err := e.Database(ctx)
	if err != nil {
		return err
	}
	if verb == "up" {
		if err := migrations.Up(ctx, dsn); err != nil {
			return err
		}
	}
	s, err := migrations.Check(ctx, dsn)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "database at version %d, this release is at %d; %d migrations of River missing\n", s.Current, s.Wanted, s.RiverMissing)
	if problem := s.Problem(); problem != nil {
		fmt.Fprintln(e.Out, problem)
	}
	return nil
}

func runDB(ctx context.Context, e *environment, args []string) error {
	args, scratch := wiring.TakeSwitch(args, "scratch")
	server, err := e.PrivateDB(scratch)
	if err != nil {
		return err
	}
	if server == nil || len(args) != 1 {
		return wiring.UsageError("loom db start|stop|remove manages the private PostgreSQL only; LOOM_DATABASE_URL must be unset")
	}
	switch args[0] {
	case "start":
		if err := server.Start(ctx); err != nil {
			return err
		}
		fmt.Fprintln(e.Out, server.DSN("loom"))
		return nil
	case "stop":
		return server.Stop(ctx)
	case "remove":
		return server.Remove(ctx)
	}
	return wiring.UsageError("loom db takes start, stop or remove, not “%s”", args[0])
}

func runConfig(_ context.Context, e *environment, args []string) error {
	args, markdown := wiring.TakeSwitch(args, "markdown")
	if len(args) > 0 {
		return wiring.UsageError("loom config takes --markdown only, not “%s”", strings.Join(args, " "))
	}
	if markdown {
		_, err := fmt.Fprint(e.Out, config.Markdown())
		return err
	}
	_, err := fmt.Fprint(e.Out, e.Values.Print())
	return err
}
