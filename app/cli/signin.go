package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"loom/app/account"
	"loom/app/loom"
)

// signInFile holds the passwords made up at the first start, mode 0600.
const signInFile = "sign-in.txt"

const signInHead = "# Sign-ins made up at the first start. Delete this file when the passwords were changed.\n# tenant user password\n"

type signIn struct {
	tenant, user string
	password     loom.Secret
}

// keepSignIns adds made-up passwords to the file, in place of older ones of the
// same users.
func (e *environment) keepSignIns(made []account.MadeUser) error {
	if len(made) == 0 {
		return nil
	}
	known, err := e.signIns()
	if err != nil {
		return err
	}
	for _, m := range made {
		for i := len(known) - 1; i >= 0; i-- {
			if known[i].tenant == m.Tenant && known[i].user == string(m.User) {
				known = append(known[:i], known[i+1:]...)
			}
		}
		known = append(known, signIn{m.Tenant, string(m.User), m.Password})
	}
	var b strings.Builder
	b.WriteString(signInHead)
	for _, k := range known {
		fmt.Fprintf(&b, "%s %s %s\n", k.tenant, k.user, k.password.Reveal())
	}
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, signInFile), []byte(b.String())); err != nil {
		return fmt.Errorf("keep the sign-ins: %w", err)
	}
	return nil
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

// printSignIns lists the made-up sign-ins; a changed password is not known.
func (e *environment) printSignIns(ctx context.Context, s *system, out io.Writer) error {
	known, err := e.signIns()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  tenant\tuser\tpassword")
	for _, k := range known {
		holds, err := s.accounts.PasswordIs(ctx, k.tenant, loom.UserID(k.user), k.password)
		if err != nil {
			return err
		}
		password := "(changed)"
		if holds {
			password = k.password.Reveal()
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", k.tenant, k.user, password)
	}
	return t.Flush()
}
