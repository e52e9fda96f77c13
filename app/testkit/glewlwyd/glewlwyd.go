// Package glewlwyd runs a real identity provider for tests, Debian's glewlwyd, as
// docs/identity.sh sets it up: with the users Eve, of the group staff, and Bob, of none.
//
// The script ends with its input, however this process goes, and takes the provider along.
// Only _test files import the package.
package glewlwyd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/testkit"
)

// ClientID is what Loom is registered as.
const ClientID = "loom"

// Users of the provider.
const (
	Eve, EvePassword = "eve", "eve-password"
	Bob, BobPassword = "bob", "bob-password"
)

// Provider is a running identity provider. It ends with its test.
type Provider struct {
	// Issuer is the URL that it calls itself, Secret that of the client.
	Issuer, Secret string

	t     testing.TB
	input io.WriteCloser
	said  *bufio.Scanner
	wrong bytes.Buffer
}

// Start starts a provider that knows no client yet. The test is skipped without glewlwyd, or
// fails where everything must run.
func Start(t testing.TB) *Provider {
	t.Helper()
	for program, pkg := range map[string]string{"glewlwyd": "glewlwyd", "sqlite3": "sqlite3", "openssl": "openssl", "curl": "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			testkit.Skip(t, "%s is not installed: apt-get install -y %s", program, pkg)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	p := &Provider{t: t}
	cmd := exec.Command(script(t), fmt.Sprint(port))
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "no_proxy=127.0.0.1")
	cmd.Stderr = &p.wrong
	if p.input, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.said = bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.input.Close()
		for p.said.Scan() { // its output ends when the last of its processes does
		}
		_ = cmd.Wait() // says what Start or Register said, if anything
		if t.Failed() {
			t.Logf("glewlwyd says: %s", p.wrong.String())
		}
	})
	said := p.until("Then paste the redirect URI")
	p.Issuer, p.Secret = said["Issuer"], said["Client secret"]
	if p.Issuer == "" || p.Secret == "" {
		t.Fatalf("the script says %v", said)
	}
	return p
}

// Register makes Loom a client, which gets people back at an address.
func (p *Provider) Register(redirect string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.input, redirect); err != nil {
		p.t.Fatal(err)
	}
	p.until("Press Enter")
}

// until reads what the script says up to a line that begins so, and returns the values in it.
func (p *Provider) until(start string) map[string]string {
	p.t.Helper()
	values := map[string]string{}
	for p.said.Scan() {
		line := strings.TrimSpace(p.said.Text())
		if strings.HasPrefix(line, start) {
			return values
		}
		if name, value, ok := strings.Cut(line, "  "); ok {
			values[name] = strings.TrimSpace(value)
		}
	}
	p.t.Fatalf("the script ended before it said %q", start)
	return nil
}

// script finds docs/identity.sh above the directory of the test.
func script(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "docs", "identity.sh")
		}
	}
	t.Fatalf("no directory above has go.mod: %v", err)
	return ""
}
