package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
)

// jumpHostKeys is the result under which CONFIRM records the keys of jump hosts:
// "host:port" to keys as those of the machine.
const jumpHostKeys = "ssh_jump_host_keys"

// maxJumps bounds the jump hosts on the way to one machine.
const maxJumps = 8

var (
	jumpUser = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}$`)
	jumpHost = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,253}[A-Za-z0-9])?$`)
)

// jumpsOf reads the provider's jump hosts, in the order in which they are passed:
// the fields ssh_jump, ssh_jump_key_resource and ssh_jump_host_key. Without a key
// of their own they are opened with the machine's. Errors are of kind
// ErrCredentials or come from reading a key file.
func jumpsOf(spec *loom.TaskSpec, files string, machine Target) ([]Target, error) {
	field := strings.TrimSpace(text(spec.Provider.Fields["ssh_jump"]))
	if field == "" {
		return nil, nil
	}
	keys := machine.Keys
	if name := strings.TrimSpace(text(spec.Provider.Fields["ssh_jump_key_resource"])); name != "" {
		key, err := readIdentity(files, "ssh_keys/"+name[strings.LastIndexByte(name, '/')+1:])
		if err != nil {
			return nil, err
		}
		keys = []loom.Secret{key}
	}
	pins, err := parsePins(text(spec.Provider.Fields["ssh_jump_host_key"]))
	if err != nil {
		return nil, err
	}
	var hops []Target
	for _, word := range strings.Split(field, ",") {
		hop, err := parseHop(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		hop.Keys, hop.Passphrase, hop.Legacy, hop.HostCAs, hop.Reach = keys, machine.Passphrase, machine.Legacy, machine.HostCAs, machine.Reach
		if hop.HostKeys = pins.of(hop); hop.HostKeys == nil {
			hop.HostKeys = recordedJump(spec, hop.HostPort())
		}
		hops = append(hops, hop)
	}
	if len(hops) > maxJumps {
		return nil, fail(ErrCredentials, nil, "provider field ssh_jump names %d jump hosts; at most %d are possible", len(hops), maxJumps)
	}
	return hops, nil
}

// parseHop reads [user@]host[:port].
func parseHop(word string) (Target, error) {
	bad := func(what string) (Target, error) {
		return Target{}, fail(ErrCredentials, nil, "provider field ssh_jump: %.100q %s; give user@host or user@host:port, several separated by commas", word, what)
	}
	hop := Target{Address: strings.ToLower(word)}
	if i := strings.LastIndexByte(word, '@'); i >= 0 {
		hop.User, hop.Address = word[:i], strings.ToLower(word[i+1:])
		if !jumpUser.MatchString(hop.User) {
			return bad("has no user before the @")
		}
	}
	if a, err := netip.ParseAddr(hop.Address); err == nil { // without a port
		hop.Address = a.String()
		return hop, nil
	}
	if host, port, err := net.SplitHostPort(hop.Address); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return bad("has no port between 1 and 65535 behind the colon")
		}
		hop.Address, hop.Port = host, int(n)
	}
	if a, err := netip.ParseAddr(hop.Address); err == nil {
		hop.Address = a.String()
	} else if !jumpHost.MatchString(hop.Address) {
		return bad("names no host")
	}
	return hop, nil
}

// pins are host keys that an administrator gave for jump hosts: by address or
// "[address]:port" as in known_hosts, or for all of them under "".
type pins map[string]map[string]string

func parsePins(field string) (pins, error) {
	all := pins{}
	for line := range strings.Lines(field) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		names := []string{""}
		key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil || len(options) > 0 { // host names stand before the key
			var marker string
			if marker, names, key, _, _, err = ssh.ParseKnownHosts([]byte(line)); err == nil && (marker != "" || strings.HasPrefix(line, "|")) {
				err = errors.New("marks and hashed names are not understood")
			}
		}
		if err != nil {
			return nil, fail(ErrCredentials, nil, "provider field ssh_jump_host_key: %.60q is no public host key; give lines as ssh-keyscan prints them", line)
		}
		kind, encoded := EncodeHostKey(key)
		for _, name := range names {
			name = strings.ToLower(name)
			if all[name] == nil {
				all[name] = map[string]string{}
			}
			all[name][kind] = encoded
		}
	}
	return all, nil
}

func (p pins) of(hop Target) map[string]string {
	for _, name := range []string{fmt.Sprintf("[%s]:%d", hop.Address, hop.port()), hop.Address, ""} {
		if keys := p[name]; keys != nil {
			return keys
		}
	}
	return nil
}

// recordedJump returns the keys that the node's CONFIRM recorded for a jump host.
func recordedJump(spec *loom.TaskSpec, place string) map[string]string {
	switch all := spec.Results[jumpHostKeys].(type) {
	case map[string]any:
		return hostKeys(all[place])
	case map[string]map[string]string:
		return hostKeys(all[place])
	}
	return nil
}

// hop returns the last jump host of a target, with those before it as its own.
func (t Target) hop() Target {
	last := len(t.Jump) - 1
	hop := t.Jump[last]
	hop.Jump = t.Jump[:last:last]
	// A slot of its own in the pool for each set of credentials.
	hop.Node = loom.NodeID("jump " + hop.identity())
	return hop
}

// way says how a target is reached, for messages; "" when directly.
func (t Target) way() string {
	if len(t.Jump) == 0 {
		return ""
	}
	hops := make([]string, len(t.Jump))
	for i, hop := range t.Jump {
		hops[i] = hop.HostPort()
	}
	return " by way of jump host " + strings.Join(hops, ", ")
}

// wayError is trouble with a jump host, which says nothing of the machine.
type wayError struct{ trouble *Error }

// Error returns the trouble.
func (e *wayError) Error() string { return e.trouble.Error() }

// Unwrap returns the trouble.
func (e *wayError) Unwrap() error { return e.trouble }

// connect opens a TCP connection to a target, by way of its jump hosts if it has
// any. via is the connection to the last of them.
func (d *Dialer) connect(ctx context.Context, t Target) (socket net.Conn, via *Conn, err error) {
	if len(t.Jump) == 0 {
		dialer := net.Dialer{Timeout: ConnectTimeout, KeepAlive: -1, ControlContext: t.Reach.Control}
		socket, err = dialer.DialContext(ctx, "tcp", t.HostPort())
		return socket, nil, err
	}
	hop := t.hop()
	via, release, err := d.jumpPool().Conn(ctx, hop)
	if err != nil {
		var trouble *Error
		if ctx.Err() != nil || !errors.As(err, &trouble) {
			return nil, nil, err
		}
		if strings.HasPrefix(trouble.Text, "jump host ") { // of one before the last
			return nil, nil, &wayError{trouble}
		}
		return nil, nil, &wayError{&Error{Kind: trouble.Kind, Text: "jump host " + hop.HostPort() + ": " + trouble.Text, Err: trouble.Err}}
	}
	socket, err = via.tunnel(ctx, t, release)
	if err != nil {
		release()
		return nil, nil, err
	}
	return socket, via, nil
}

// Connect opens a TCP connection to a port of a machine, the way SSH goes to it: by way of
// its jump hosts if it has any, and within its reach. The caller closes it.
func (d *Dialer) Connect(ctx context.Context, t Target, port int) (net.Conn, error) {
	t.Port = port
	socket, _, err := d.connect(ctx, t)
	return socket, err
}

// jumpPool keeps the connections to jump hosts: one for all machines behind one.
func (d *Dialer) jumpPool() *Pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jumps == nil {
		d.jumps = newPool(d)
		d.jumps.jumps = true
	}
	return d.jumps
}

// closeJumps ends the connections to jump hosts and with them all that go by way
// of them.
func (d *Dialer) closeJumps() {
	d.mu.Lock()
	jumps := d.jumps
	d.jumps = nil
	d.mu.Unlock()
	if jumps != nil {
		_ = jumps.Close()
	}
}

// tunnel asks the machine at the other end of c to connect to the target. The
// socket keeps deadlines and ends at once when it is closed, which a channel does
// not; done is called when it has ended.
func (c *Conn) tunnel(ctx context.Context, t Target, done func()) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	ask := struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}{t.Address, uint32(t.port()), "127.0.0.1", 0} //nolint:gosec // a port
	channel, requests, err := openChannel(ctx, c.ssh, "direct-tcpip", ssh.Marshal(&ask))
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused) && refused.Reason != ssh.ConnectionFailed:
		return nil, &wayError{&Error{Kind: ErrJump, Err: err,
			Text: fmt.Sprintf("jump host %s does not pass on connections to %s; allow it there (AllowTcpForwarding, PermitOpen)", c.target.HostPort(), t.HostPort())}}
	case err != nil:
		return nil, fmt.Errorf("jump host %s cannot connect: %w", c.target.HostPort(), err)
	}
	go ssh.DiscardRequests(requests)
	near, far := net.Pipe()
	unuse := c.use()
	go func() {
		_, _ = io.Copy(far, channel)
		_ = far.Close()
	}()
	go func() {
		_, _ = io.Copy(channel, far)
		_ = channel.Close()
		_ = far.Close()
		unuse()
		done()
	}()
	return near, nil
}

// JumpHostKeys returns the keys that the jump hosts on the way showed, by
// "host:port", each as HostKeys gives them; nil when there are none. They belong
// into the result ssh_jump_host_keys, from which TargetOf reads them.
func (c *Conn) JumpHostKeys() map[string]map[string]string {
	var all map[string]map[string]string
	for via := c.via; via != nil; via = via.via {
		if all == nil {
			all = map[string]map[string]string{}
		}
		all[via.target.HostPort()] = via.HostKeys()
	}
	return all
}

// openChannel exists since the library's call cannot be cancelled: a channel that
// comes too late is closed by whoever gets it.
func openChannel(ctx context.Context, conn ssh.Conn, kind string, payload []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	type opened struct {
		channel  ssh.Channel
		requests <-chan *ssh.Request
		err      error
	}
	answer := make(chan opened, 1)
	go func() {
		channel, requests, err := conn.OpenChannel(kind, payload)
		answer <- opened{channel, requests, err}
	}()
	select {
	case o := <-answer:
		return o.channel, o.requests, o.err
	case <-ctx.Done():
		go func() {
			if o := <-answer; o.err == nil {
				go ssh.DiscardRequests(o.requests)
				_ = o.channel.Close()
			}
		}()
		return nil, nil, context.Cause(ctx)
	}
}
