package wiring

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"loom/app/account"
	"loom/app/loom"
)

// SignInFile holds generated passwords until somebody signs in with them, mode 0600;
// signInLock is held by whoever changes it.
const (
	SignInFile = "sign-in.txt"
	SignInLock = "sign-in.lock"
)

const signInHead = "# Generated sign-ins that nobody has used yet; each goes from here with its first use.\n# tenant user password\n"

// SignIn is a generated sign-in that nobody has used yet.
type SignIn struct {
	Tenant, User string
	Password     loom.Secret
}

// KeepSignIns adds generated passwords to the file, in place of older ones of the
// same users.
func (e *Environment) KeepSignIns(ctx context.Context, made []account.MadeUser) error {
	if len(made) == 0 {
		return nil
	}
	err := e.changeSignIns(ctx, func(known []SignIn) []SignIn {
		for _, m := range made {
			known = slices.DeleteFunc(known, func(k SignIn) bool { return k.Tenant == m.Tenant && k.User == string(m.User) })
			known = append(known, SignIn{m.Tenant, string(m.User), m.Password})
		}
		return known
	})
	if err != nil {
		return fmt.Errorf("keep the sign-ins: %w", err)
	}
	return nil
}

// ForgetSignIn takes a user from the file who has just signed in. It is asked at each
// sign-in, nearly always without a file. That it fails stops nobody: the next start
// tries again.
func (e *Environment) ForgetSignIn(ctx context.Context, tenant string, user loom.UserID) {
	known, err := e.SignIns()
	his := func(k SignIn) bool { return k.Tenant == tenant && k.User == string(user) }
	if err == nil && slices.ContainsFunc(known, his) {
		// Whoever signed in may be gone already.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = e.changeSignIns(ctx, func(known []SignIn) []SignIn { return slices.DeleteFunc(known, his) })
	}
	if err != nil {
		e.Log.Error("a used password is still in "+SignInFile, "tenant", tenant, "user", user, "error", err.Error())
	}
}

// SweepSignIns takes those from the file who have signed in elsewhere, or have another
// password now.
func (e *Environment) SweepSignIns(ctx context.Context, s *System) error {
	known, err := e.SignIns()
	if err != nil || len(known) == 0 {
		return err
	}
	var over []SignIn
	for _, k := range known {
		unused, err := s.Accounts.PasswordUnused(ctx, k.Tenant, loom.UserID(k.User), k.Password)
		if err != nil {
			return err
		}
		if !unused {
			over = append(over, k)
		}
	}
	if len(over) == 0 {
		return nil
	}
	return e.changeSignIns(ctx, func(known []SignIn) []SignIn {
		return slices.DeleteFunc(known, func(k SignIn) bool { return slices.Contains(over, k) })
	})
}

// changeSignIns rewrites the file, alone among all processes of the data directory.
// Without sign-ins there is no file.
func (e *Environment) changeSignIns(ctx context.Context, change func(known []SignIn) []SignIn) error {
	dir, err := e.DataDir()
	if err != nil {
		return err
	}
	unlock, err := LockFile(ctx, filepath.Join(dir, SignInLock))
	if err != nil {
		return err
	}
	defer unlock()
	known, err := e.SignIns()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, SignInFile)
	if known = change(known); len(known) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	var b strings.Builder
	b.WriteString(signInHead)
	for _, k := range known {
		fmt.Fprintf(&b, "%s %s %s\n", k.Tenant, k.User, k.Password.Reveal())
	}
	return ReplaceFile(path, []byte(b.String()))
}

// SignIns reads the file.
func (e *Environment) SignIns() ([]SignIn, error) {
	dir, err := e.DataDir()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, SignInFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []SignIn
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && !strings.HasPrefix(fields[0], "#") {
			all = append(all, SignIn{fields[0], fields[1], loom.NewSecret(fields[2])})
		}
	}
	return all, nil
}

// PrintSignIns lists the generated sign-ins that nobody has used yet.
func (e *Environment) PrintSignIns(ctx context.Context, s *System, out io.Writer) error {
	if err := e.SweepSignIns(ctx, s); err != nil {
		return err
	}
	known, err := e.SignIns()
	if err != nil {
		return err
	}
	if len(known) > 0 {
		fmt.Fprint(out, "Sign in with one of these, which nobody has used yet:\n\n")
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  tenant\tuser\tpassword")
		for _, k := range known {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", k.Tenant, k.User, k.Password.Reveal())
		}
		fmt.Fprintln(t)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, "A generated password is kept until its first use. “loom user password USER --tenant NAME” generates a new one.")
	return err
}
