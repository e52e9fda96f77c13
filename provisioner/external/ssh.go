package external

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

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
func (w *workspace) lendSSH(t remote.Target) (*loan, error) {
	l := &loan{done: make(chan struct{}), conns: map[net.Conn]bool{}}
	user := t.User
	if user == "" {
		user = "root"
	}
	if strings.ContainsAny(user+t.Address, "\"'\\\n\r\t ") {
		return nil, &remote.Error{Kind: remote.ErrCredentials, Text: fmt.Sprintf("%q or %q cannot be a user and an address", user, t.Address)}
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
	fmt.Fprintf(&b, "  UserKnownHostsFile %s\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking %s\n  UpdateHostKeys no\n  BatchMode %s\n", quoted(known), check, batch)
	fmt.Fprintf(&b, "  ConnectTimeout 20\n  ServerAliveInterval 15\n  ServerAliveCountMax 4\n  ControlMaster auto\n  ControlPath %s\n  ControlPersist no\n", quoted(w.path("tmp", ".ssh-control")))
	if t.Legacy {
		b.WriteString("  HostKeyAlgorithms +ssh-rsa\n  PubkeyAcceptedAlgorithms +ssh-rsa\n")
	}
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
	for i, key := range t.Keys {
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
	for _, kind := range sortedKeys(t.HostKeys) {
		blob, err := base64.StdEncoding.DecodeString(strings.TrimSpace(t.HostKeys[kind]))
		if err != nil {
			continue
		}
		key, err := ssh.ParsePublicKey(blob)
		if err != nil {
			continue
		}
		names := "node"
		if t.Address != "" {
			names += "," + t.Address + ",[" + t.Address + "]:" + fmt.Sprint(or(t.Port, 22))
		}
		fmt.Fprintf(&b, "%s %s", names, ssh.MarshalAuthorizedKey(key))
	}
	return b.String()
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
