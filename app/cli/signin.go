package cli

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

// signInFile holds generated passwords until somebody signs in with them, mode 0600;
// signInLock is held by whoever changes it.
const (
	signInFile = "sign-in.txt"
	signInLock = "sign-in.lock"
)

const signInHead = "# Generated sign-ins that nobody has used yet; each goes from here with its first use.\n# tenant user password\n"

type signIn struct {
	tenant, user string
	password     loom.Secret
}

// keepSignIns adds generated passwords to the file, in place of older ones of the
// same users.
func (e *environment) keepSignIns(ctx context.Context, made []account.MadeUser) error {
	if len(made) == 0 {
		return nil
	}
	err := e.changeSignIns(ctx, func(known []signIn) []signIn {
		for _, m := range made {
			known = slices.DeleteFunc(known, func(k signIn) bool { return k.tenant == m.Tenant && k.user == string(m.User) })
			known = append(known, signIn{m.Tenant, string(m.User), m.Password})
		}
		return known
	})
	if err != nil {
		return fmt.Errorf("keep the sign-ins: %w", err)
	}
	return nil
}

// forgetSignIn takes a user from the file who has just signed in. It is asked at each
// sign-in, nearly always without a file. That it fails stops nobody: the next start
// tries again.
func (e *environment) forgetSignIn(ctx context.Context, tenant string, user loom.UserID) {
	known, err := e.signIns()
	his := func(k signIn) bool { return k.tenant == tenant && k.user == string(user) }
	if err == nil && slices.ContainsFunc(known, his) {
		// Whoever signed in may be gone already.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = e.changeSignIns(ctx, func(known []signIn) []signIn { return slices.DeleteFunc(known, his) })
	}
	if err != nil {
		e.log.Error("a used password is still in "+signInFile, "tenant", tenant, "user", user, "error", err.Error())
	}
}

// sweepSignIns takes those from the file who have signed in elsewhere, or have another
// password now.
func (e *environment) sweepSignIns(ctx context.Context, s *system) error {
	known, err := e.signIns()
	if err != nil || len(known) == 0 {
		return err
	}
	var over []signIn
	for _, k := range known {
		unused, err := s.accounts.PasswordUnused(ctx, k.tenant, loom.UserID(k.user), k.password)
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
	return e.changeSignIns(ctx, func(known []signIn) []signIn {
		return slices.DeleteFunc(known, func(k signIn) bool { return slices.Contains(over, k) })
	})
}

// changeSignIns writes the file anew, alone among all processes of the data directory.
// Without sign-ins there is no file.
func (e *environment) changeSignIns(ctx context.Context, change func(known []signIn) []signIn) error {
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	unlock, err := lockFile(ctx, filepath.Join(dir, signInLock))
	if err != nil {
		return err
	}
	defer unlock()
	known, err := e.signIns()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, signInFile)
	if known = change(known); len(known) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	var b strings.Builder
	b.WriteString(signInHead)
	for _, k := range known {
		fmt.Fprintf(&b, "%s %s %s\n", k.tenant, k.user, k.password.Reveal())
	}
	return replaceFile(path, []byte(b.String()))
}

func (e *environment) signIns() ([]signIn, error) {
	dir, err := e.dataDir()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, signInFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []signIn
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && !strings.HasPrefix(fields[0], "#") {
			all = append(all, signIn{fields[0], fields[1], loom.NewSecret(fields[2])})
		}
	}
	return all, nil
}

// printSignIns lists the generated sign-ins that nobody has used yet.
func (e *environment) printSignIns(ctx context.Context, s *system, out io.Writer) error {
	if err := e.sweepSignIns(ctx, s); err != nil {
		return err
	}
	known, err := e.signIns()
	if err != nil {
		return err
	}
	if len(known) > 0 {
		fmt.Fprint(out, "Sign in with one of these, which nobody has used yet:\n\n")
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  tenant\tuser\tpassword")
		for _, k := range known {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", k.tenant, k.user, k.password.Reveal())
		}
		fmt.Fprintln(t)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, "A generated password is kept until its first use. “loom user password USER --tenant NAME” generates a new one.")
	return err
}
