package external

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// loan is a sign-in to one machine that a plugin may use while it runs: an agent
// with the machine's key, and a configuration that the ssh program and what
// builds on it understand. The key itself never reaches the plugin or the disk.
type loan struct {
	// environ are the variables that name it.
	environ []string
	// request is what the request says of it.
	request map[string]any

	listener net.Listener
	askpass  string
	done     chan struct{}
	work     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// lendSSH prepares a sign-in to the target. Errors of package remote mean that its
// credentials cannot be used.
func (w *workspace) lendSSH(ctx context.Context, t remote.Target) (*loan, error) {
	l := &loan{done: make(chan struct{}), conns: map[net.Conn]bool{}}
	user := t.User
	if user == "" {
		user = "root"
	}
	if strings.ContainsAny(user+t.Address, "\"'\\\n\r\t ") {
		return nil, &remote.Error{Kind: remote.ErrCredentials, Text: fmt.Sprintf("%q or %q cannot be a user and an address", user, t.Address)}
	}
	for _, hop := range t.Jump {
		if strings.ContainsAny(hop.User+hop.Address, "\"'\\\n\r\t ,") {
			return nil, &remote.Error{Kind: remote.ErrCredentials, Text: fmt.Sprintf("%q or %q cannot be a user and an address of a jump host", hop.User, hop.Address)}
		}
	}
	if err := reachable(ctx, t); err != nil {
		return nil, err
	}
	keyring, err := keysOf(t)
	if err != nil {
		return nil, err
	}
	socket := w.path("lent", "agent")
	if l.listener, err = net.Listen("unix", socket); err != nil {
		return nil, fmt.Errorf("open the agent of a plugin: %w", err)
	}
	if err := w.handOver(socket); err != nil {
		return nil, errors.Join(err, l.listener.Close())
	}
	l.work.Go(func() { l.serve(readOnly{keyring}) })
	if err := l.configure(w, t, user, socket); err != nil {
		l.end()
		return nil, fmt.Errorf("lend a sign-in: %w", err)
	}
	return l, nil
}

// reachable checks the address that the ssh program is going to connect to, which has
// no control of its own: the first jump host, or the machine.
func reachable(ctx context.Context, t remote.Target) error {
	first := t
	if len(t.Jump) > 0 {
		first = t.Jump[0]
	}
	err := t.Reach.CheckHost(ctx, first.Address)
	var refused *loom.RefusedAddress
	if errors.As(err, &refused) {
		return &remote.Error{Kind: remote.ErrRefused, Text: fmt.Sprintf("no SSH connection to %s: %s", first.HostPort(), refused.Tell(ctx, first.Address))}
	}
	return err
}

// handOver lets the plugin's user connect to a socket or open a pipe.
func (w *workspace) handOver(path string) error {
	if err := os.Chmod(path, 0o600); err != nil || w.owner == nil {
		return err
	}
	return os.Chown(path, w.owner.UID, w.owner.GID)
}

func (l *loan) configure(w *workspace, t remote.Target, user, socket string) error {
	port := t.Port
	if port == 0 {
		port = 22
	}
	known, err := w.lend("known_hosts", []byte(knownHosts(t)), 0o600)
	if err != nil {
		return err
	}
	check := "yes"
	if len(t.HostKeys) == 0 { // before CONFIRM has learned it
		known, check = w.path("tmp", ".known_hosts"), "accept-new"
	}
	password := !t.Password.IsZero()
	batch := "yes"
	if password && len(t.Keys) == 0 {
		batch = "no"
	}
	var b strings.Builder
	b.WriteString("Host node\n")
	if t.Address != "" {
		fmt.Fprintf(&b, "  HostName %s\n  Port %d\n", t.Address, port)
	}
	fmt.Fprintf(&b, "  User %s\n  HostKeyAlias node\n  IdentityAgent %s\n  IdentitiesOnly no\n", user, quoted(socket))
	if len(t.Jump) > 0 {
		fmt.Fprintf(&b, "  ProxyJump %s\n", strings.Join(jumpNames(t), ","))
	}
	fmt.Fprintf(&b, "  UserKnownHostsFile %s\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking %s\n  UpdateHostKeys no\n  BatchMode %s\n", quoted(known), check, batch)
	fmt.Fprintf(&b, "  ConnectTimeout 20\n  ServerAliveInterval 15\n  ServerAliveCountMax 4\n  ControlMaster auto\n  ControlPath %s\n  ControlPersist no\n", quoted(w.path("tmp", ".ssh-control")))
	if t.Legacy {
		b.WriteString("  HostKeyAlgorithms +ssh-rsa\n  PubkeyAcceptedAlgorithms +ssh-rsa\n")
	}
	l.configureJumps(&b, w, t, socket)
	config, err := w.lend("ssh_config", []byte(b.String()), 0o600)
	if err != nil {
		return err
	}
	l.environ = []string{"LOOM_SSH_CONFIG=" + config, "SSH_AUTH_SOCK=" + socket}
	l.request = map[string]any{"host": t.Address, "port": port, "user": user, "alias": "node", "password": nil, "sudo": user != "root", "host_keys": hostKeys(t)}
	if !password {
		return nil
	}
	l.request["password"] = t.Password.Reveal()
	return l.lendPassword(w, t.Password.Reveal())
}

// jumpNames are what the jump hosts of a target are called in its configuration.
func jumpNames(t remote.Target) []string {
	names := make([]string, len(t.Jump))
	for i := range t.Jump {
		names[i] = fmt.Sprint("loom-jump-", i+1)
	}
	return names
}

// configureJumps writes the jump hosts of a target into its configuration. Their
// keys are in the same agent.
func (l *loan) configureJumps(b *strings.Builder, w *workspace, t remote.Target, socket string) {
	for i, name := range jumpNames(t) {
		hop := t.Jump[i]
		known, check := w.path("lent", "known_hosts"), "yes"
		if len(hop.HostKeys) == 0 { // at the first sign-in
			known, check = w.path("tmp", ".known_hosts_jump"), "accept-new"
		}
		fmt.Fprintf(b, "Host %s\n  HostName %s\n  Port %d\n  User %s\n  HostKeyAlias %[1]s\n  IdentityAgent %[5]s\n  IdentitiesOnly no\n", name, hop.Address, or(hop.Port, 22), or(hop.User, "root"), quoted(socket))
		fmt.Fprintf(b, "  UserKnownHostsFile %s\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking %s\n  UpdateHostKeys no\n  BatchMode yes\n  ConnectTimeout 20\n  ServerAliveInterval 15\n  ServerAliveCountMax 4\n", quoted(known), check)
		if hop.Legacy {
			b.WriteString("  HostKeyAlgorithms +ssh-rsa\n  PubkeyAcceptedAlgorithms +ssh-rsa\n")
		}
	}
}

// lendPassword makes a helper that prints the password, from a pipe that only
// the plugin may open.
func (l *loan) lendPassword(w *workspace, password string) error {
	if strings.ContainsAny(password, "\n\r\x00") {
		return &remote.Error{Kind: remote.ErrCredentials, Text: "the machine's password has several lines; ssh cannot use it"}
	}
	l.askpass = w.path("lent", "password")
	if err := syscall.Mkfifo(l.askpass, 0o600); err != nil {
		return err
	}
	if err := w.handOver(l.askpass); err != nil {
		return err
	}
	helper, err := w.lend("askpass", []byte("#!/bin/sh\nIFS= read -r password <\""+l.askpass+"\" && printf '%s\\n' \"$password\"\n"), 0o700)
	if err != nil {
		return err
	}
	l.environ = append(l.environ, "SSH_ASKPASS="+helper, "SSH_ASKPASS_REQUIRE=force", "DISPLAY=none")
	l.work.Go(func() { l.tellPassword(password) })
	return nil
}

// tellPassword answers every reader of the pipe.
func (l *loan) tellPassword(password string) {
	for {
		pipe, err := os.OpenFile(l.askpass, os.O_WRONLY, 0) // waits for a reader
		if err != nil {
			return
		}
		select {
		case <-l.done:
			_ = pipe.Close()
			return
		default:
		}
		_, _ = pipe.WriteString(password + "\n") // a reader that went away asks again
		_ = pipe.Close()
	}
}

func keysOf(t remote.Target) (agent.Agent, error) {
	keyring := agent.NewKeyring()
	keys := slices.Clone(t.Keys)
	for _, hop := range t.Jump {
		for _, key := range hop.Keys {
			if !slices.ContainsFunc(keys, func(have loom.Secret) bool { return have.Reveal() == key.Reveal() }) {
				keys = append(keys, key)
			}
		}
	}
	for i, key := range keys {
		private, err := ssh.ParseRawPrivateKey([]byte(key.Reveal()))
		var locked *ssh.PassphraseMissingError
		if errors.As(err, &locked) && !t.Passphrase.IsZero() {
			private, err = ssh.ParseRawPrivateKeyWithPassphrase([]byte(key.Reveal()), []byte(t.Passphrase.Reveal()))
		}
		if err == nil {
			err = keyring.Add(agent.AddedKey{PrivateKey: private, Comment: "loom"})
		}
		if err != nil { // the cause is left out: parsers like to quote what they read
			return nil, &remote.Error{Kind: remote.ErrCredentials, Text: fmt.Sprintf("SSH key %d of the node cannot be read; give a private key in PEM form, with its passphrase", i+1)}
		}
	}
	return keyring, nil
}

// knownHosts writes the recorded host keys as a file of the ssh program.
func knownHosts(t remote.Target) string {
	var b strings.Builder
	names := "node"
	if t.Address != "" {
		names += "," + t.Address + ",[" + t.Address + "]:" + fmt.Sprint(or(t.Port, 22))
	}
	writeKnown(&b, names, t.HostKeys)
	for i, name := range jumpNames(t) {
		writeKnown(&b, name, t.Jump[i].HostKeys)
	}
	return b.String()
}

func writeKnown(b *strings.Builder, names string, keys map[string]string) {
	for _, kind := range sortedKeys(keys) {
		blob, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[kind]))
		if err != nil {
			continue
		}
		key, err := ssh.ParsePublicKey(blob)
		if err != nil {
			continue
		}
		fmt.Fprintf(b, "%s %s", names, ssh.MarshalAuthorizedKey(key))
	}
}

func hostKeys(t remote.Target) map[string]string {
	if t.HostKeys == nil {
		return map[string]string{}
	}
	return t.HostKeys
}

// quoted is a path in ssh_config, where per cent and quotes mean something.
func quoted(path string) string { return `"` + strings.ReplaceAll(path, "%", "%%") + `"` }

func (l *loan) serve(keys agent.Agent) {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.conns[conn] = true
		l.mu.Unlock()
		l.work.Go(func() {
			_ = agent.ServeAgent(keys, conn)
			_ = conn.Close()
			l.mu.Lock()
			delete(l.conns, conn)
			l.mu.Unlock()
		})
	}
}

// end takes the sign-in back. It may be called on nil.
func (l *loan) end() {
	if l == nil {
		return
	}
	close(l.done)
	_ = l.listener.Close()
	l.mu.Lock()
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	if l.askpass != "" { // wakes the one that waits for a reader
		if pipe, err := os.OpenFile(l.askpass, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			defer pipe.Close()
			go io.Copy(io.Discard, pipe) //nolint:errcheck // lest the pipe is full
		}
	}
	l.work.Wait()
}

// readOnly is an agent that signs and takes no orders.
type readOnly struct{ agent.Agent }

var errReadOnly = errors.New("this agent is lent")

// Add refuses.
func (readOnly) Add(agent.AddedKey) error { return errReadOnly }

// Remove refuses.
func (readOnly) Remove(ssh.PublicKey) error { return errReadOnly }

// RemoveAll refuses.
func (readOnly) RemoveAll() error { return errReadOnly }

// Lock refuses.
func (readOnly) Lock([]byte) error { return errReadOnly }

// Unlock refuses.
func (readOnly) Unlock([]byte) error { return errReadOnly }
