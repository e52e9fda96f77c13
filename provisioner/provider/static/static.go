// Package static is the provider of machines that exist already and are reached
// over SSH.
//
// A reservation lives on its machine, in /var/lib/loom-node, so any number of
// provisioners agree on who has it. The package must not keep anything about
// machines itself, and must not change a machine beyond that directory and the keys
// of a cluster's owner: it belongs to somebody.
package static

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
)

//go:embed machine.sh
var machineScript string

// lookers is how many machines are looked at side by side.
const lookers = 8

// Static is the provider. It has no state.
type Static struct{}

// New makes the provider.
func New() *Static { return &Static{} }

// Type describes the provider type for the catalog.
func (*Static) Type() loom.PluginType { return Type() }

// record is what a reservation says of its node.
type record struct {
	Node    loom.NodeID   `json:"node"`
	Key     string        `json:"key"`
	Cluster string        `json:"cluster"`
	Tenant  loom.TenantID `json:"tenant"`
	Name    string        `json:"name"`
}

// holding is what a machine answered.
type holding struct {
	host host
	// state is "free", "mine", "taken" or "foreign" (a directory that is not Loom's).
	state  string
	record record
	err    error
}

// Create reserves a machine: the one that has the node's key already, else the
// first free one of the flavor and the image, in the order of the list. A machine
// that does not answer is passed over with a line in the log.
func (s *Static) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	hosts, err := parseHosts(text(spec.Provider.Fields["hosts"]))
	if err != nil {
		return refused(202, "%s", err), nil
	}
	if len(hosts) == 0 {
		return refused(202, "provider %s names no machines; write one per line into its field hosts", spec.Provider.Name), nil
	}
	found := s.look(ctx, spec, hosts, nil)
	if err := ctx.Err(); err != nil {
		return loom.TaskResult{}, context.Cause(ctx)
	}
	fitting, free := 0, 0
	for _, f := range found {
		if f.state == "mine" {
			sink.Log("loom", f.host.id()+" is reserved for this node already")
			return s.reserved(spec, f.host, sink)
		}
	}
	var silent []string
	var walled error
	for _, f := range found {
		if !f.host.fits(spec.Flavor, spec.Image) {
			continue
		}
		fitting++
		switch {
		case f.err != nil:
			sink.Log("loom", "warning: "+f.host.id()+" is passed over: "+f.err.Error())
			silent = append(silent, f.host.id())
			if errors.Is(f.err, remote.ErrRefused) {
				walled = f.err
			}
			continue
		case f.state == "foreign":
			sink.Log("loom", "warning: "+f.host.id()+" is passed over: it has a /var/lib/loom-node that is not Loom’s")
			continue
		case f.state != "free":
			continue
		}
		free++
		got, err := s.take(ctx, spec, f.host)
		if err != nil {
			return remote.Failure(err)
		}
		if got == "mine" {
			sink.Log("loom", f.host.id()+" is reserved for this node")
			return s.reserved(spec, f.host, sink)
		}
		sink.Log("loom", f.host.id()+" was taken by another node a moment before")
	}
	if walled != nil && free == 0 {
		never := false
		result := refused(202, "provider field hosts: %s", walled)
		result.Retryable = &never
		return result, nil
	}
	if fitting == 0 {
		return refused(202, "provider %s has no machine of flavor “%s” and image “%s”; add one to its field hosts", spec.Provider.Name, spec.Flavor, spec.Image), nil
	}
	message := fmt.Sprintf("provider %s has no free machine of flavor “%s” and image “%s”: all %d are in use", spec.Provider.Name, spec.Flavor, spec.Image, fitting)
	if len(silent) > 0 {
		message += " or do not answer (" + strings.Join(silent, ", ") + ")"
	}
	return refused(202, "%s; add machines, or delete a cluster", message), nil
}

// reserved reports the machine of a node.
func (s *Static) reserved(spec *loom.TaskSpec, h host, sink loom.Sink) (loom.TaskResult, error) {
	result := map[string]any{"providerid": h.id(), "ssh-auth": s.auth(spec, h)}
	if h.port != 22 {
		result["ssh_port"] = h.port
	}
	if err := sink.Fact(result); err != nil {
		return loom.TaskResult{}, err
	}
	return loom.TaskResult{Message: "reserved " + h.id(), Result: result}, nil
}

// Confirm carries out the shared steps on the reserved machine.
func (s *Static) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	id := text(spec.Results["providerid"])
	h, err := s.hostOf(spec, id)
	if err != nil {
		return loom.TaskResult{Status: 1, Message: err.Error()}, nil
	}
	access, err := resolve(ctx, h.address)
	if err != nil {
		return loom.TaskResult{Status: 1, Message: err.Error()}, nil
	}
	if access != h.address {
		// The address becomes part of the node and of messages, also behind a jump host, so a
		// name must not lead to one that the tenant may not reach.
		var beyond *loom.RefusedAddress
		if addr, err := netip.ParseAddr(access); err == nil && errors.As(spec.Reach.Check(addr), &beyond) {
			never := false
			r := refused(1, "no SSH connection to %s: %s; behind a jump host, write the machine’s IP address into the field hosts", h.id(), beyond.Tell(ctx, h.address))
			r.Retryable = &never
			return r, nil
		}
	}
	bind := h.bind
	if bind == "" {
		bind = access
	}
	return provider.Confirm(ctx, spec, provider.Machine{Addresses: map[string]string{loom.AccessV4: access, loom.BindV4: bind}, Port: h.port, Names: []string{h.address}}, sink)
}

// Delete returns the machine back: the clean-up script runs, the keys of the
// cluster's owner and the reservation go. A machine that does not answer is a failure
// until the last try: a dead one must not keep its cluster. It is let go as it
// is then, and the message says so; when it answers again its reservation is listed as
// an orphan, whose removal cleans it.
func (s *Static) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	var hosts []host
	if id := text(spec.Results["providerid"]); id != "" {
		h, err := s.hostOf(spec, id)
		if err != nil {
			return loom.TaskResult{Status: 1, Message: err.Error()}, nil
		}
		hosts = []host{h}
	} else {
		var err error
		if hosts, err = parseHosts(text(spec.Provider.Fields["hosts"])); err != nil {
			return loom.TaskResult{Status: 1, Message: err.Error()}, nil
		}
	}
	var silent, refused error
	var dead []string
	for _, f := range s.look(ctx, spec, hosts, nil) {
		switch {
		case errors.Is(f.err, remote.ErrUnreachable):
			silent, dead = f.err, append(dead, f.host.id())
		case f.err != nil:
			refused = f.err
		case f.state == "mine":
			if message, err := s.give(ctx, spec, f.host, sink); err != nil || message != "" {
				if err != nil {
					return remote.Failure(err)
				}
				return loom.TaskResult{Status: 1, Message: message}, nil
			}
			sink.Log("loom", f.host.id()+" is given back")
		}
	}
	if err := ctx.Err(); err != nil {
		return loom.TaskResult{}, context.Cause(ctx)
	}
	if refused != nil {
		return remote.Failure(refused)
	}
	message := ""
	if len(dead) > 0 {
		message = strings.Join(dead, ", ") + " does not answer and was not cleaned: services, keys and the reservation stay on it; when it answers again, it is listed among the orphans, where it can be cleaned"
		if spec.Results["providerid"] == nil {
			message = "whether this node has a machine is not known: " + strings.Join(dead, ", ") + " does not answer and was not cleaned"
		}
		if !spec.LastTry {
			return remote.Failure(silent)
		}
		sink.Log("loom", "warning: "+message)
	}
	return loom.TaskResult{Message: message, Result: map[string]any{"providerid": nil, "ssh-auth": nil, "ssh_host_keys": nil, "ssh_port": nil}}, nil
}

// give runs the clean-up script and removes the reservation. A message says what
// went wrong on the machine.
func (s *Static) give(ctx context.Context, spec *loom.TaskSpec, h host, sink loom.Sink) (message string, err error) {
	conn, release, err := s.connect(ctx, spec, h)
	if err != nil {
		return "", err
	}
	defer release()
	if message, err = cleanUp(ctx, conn, spec, sink); err != nil || message != "" {
		return message, err
	}
	answer, err := s.ask(ctx, conn, spec, "give", "")
	if err != nil {
		return "", err
	}
	if answer.state == "mine" {
		return h.id() + " still holds the reservation", nil
	}
	return "", nil
}

// look asks all hosts what they hold, in their order.
func (s *Static) look(ctx context.Context, spec *loom.TaskSpec, hosts []host, each func(holding)) []holding {
	found := make([]holding, len(hosts))
	gate := make(chan struct{}, lookers)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, h := range hosts {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			conn, release, err := s.connect(ctx, spec, h)
			if err == nil {
				found[i], err = s.ask(ctx, conn, spec, "look", "")
				release()
			}
			found[i].host, found[i].err = h, err
			if each != nil {
				mu.Lock()
				defer mu.Unlock()
				each(found[i])
			}
		})
	}
	wg.Wait()
	return found
}

// take tries to reserve a host and says what it holds now.
func (s *Static) take(ctx context.Context, spec *loom.TaskSpec, h host) (string, error) {
	conn, release, err := s.connect(ctx, spec, h)
	if err != nil {
		return "", err
	}
	defer release()
	body, err := json.Marshal(record{Node: spec.Node, Key: spec.IdempotencyKey, Cluster: spec.Ref.Operation.Cluster.String(), Tenant: spec.Tenant, Name: spec.Hostname})
	if err != nil {
		return "", fmt.Errorf("write the record of a reservation: %w", err)
	}
	got, err := s.ask(ctx, conn, spec, "take", string(body)+"\n")
	return got.state, err
}

// ask runs the machine's side.
func (s *Static) ask(ctx context.Context, conn *remote.Conn, spec *loom.TaskSpec, do, stdin string) (holding, error) {
	out, err := conn.Run(ctx, "looking after the reservation", remote.Command{
		Text: machineScript, Root: true, Stdin: strings.NewReader(stdin),
		Env: map[string]string{"LOOM_DO": do, "LOOM_KEY": spec.IdempotencyKey, "LOOM_SET_USER": conn.User()},
	})
	if err != nil {
		return holding{}, err
	}
	state, rest, _ := strings.Cut(out.Stdout, "\n")
	f := holding{state: strings.TrimSpace(state)}
	if rest = strings.TrimSpace(rest); rest != "" {
		_ = json.Unmarshal([]byte(rest), &f.record) // somebody’s own text says nothing
	}
	return f, nil
}

// auth is how to log in to a host, as a result tells it. The provider's own password is
// that of all its hosts and no business of a node's owner; remote.TargetOf adds it.
func (s *Static) auth(spec *loom.TaskSpec, h host) map[string]any {
	user := h.user
	for _, other := range []string{text(spec.Provider.Fields["ssh_user"]), spec.SSHUser, loom.DefaultSSHUser} {
		if user == "" {
			user = other
		}
	}
	auth := map[string]any{"user": user}
	if key := text(spec.Provider.Fields["ssh_key_resource"]); key != "" {
		auth["identityfile"] = "ssh_keys/" + key
	}
	return auth
}

// connect logs in to a host. Keys of hosts are learned here and verified from
// CONFIRM on, which records them.
func (s *Static) connect(ctx context.Context, spec *loom.TaskSpec, h host) (*remote.Conn, func(), error) {
	env := provider.EnvOf(ctx)
	as := *spec
	as.Results = map[string]any{"ssh-auth": s.auth(spec, h)}
	if text(spec.Results["providerid"]) == h.id() {
		maps.Copy(as.Results, spec.Results)
	}
	target, err := remote.TargetOf(&as, env.Files)
	if err != nil {
		return nil, nil, err
	}
	// A kept connection belongs to a node's machine; here many hosts are asked for one node.
	target.Node, target.Address, target.Port = "", h.address, h.port
	conn, err := env.Handshakes.Dial(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	return conn, func() { _ = conn.Close() }, nil
}

// hostOf finds the host that a node has; one that is not in the list any longer is
// still reached as its id says.
func (s *Static) hostOf(spec *loom.TaskSpec, id string) (host, error) {
	if id == "" {
		return host{}, errors.New("the node has no machine; CREATE has not reserved one")
	}
	hosts, err := parseHosts(text(spec.Provider.Fields["hosts"]))
	if err == nil {
		for _, h := range hosts {
			if h.id() == id {
				return h, nil
			}
		}
	}
	h, err := parseAddress(id)
	if err != nil {
		return host{}, fmt.Errorf("the node’s provider id %.100q names no machine", id)
	}
	if auth, ok := spec.Results["ssh-auth"].(map[string]any); ok {
		h.user = text(auth["user"])
	}
	return h, nil
}

// resolve returns the IP address of a host, which other nodes and macros need.
func resolve(ctx context.Context, address string) (string, error) {
	if _, err := netip.ParseAddr(address); err == nil {
		return address, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", address)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("the name %s has no IPv4 address here; write the machine’s IP address into the field hosts", address)
	}
	return found[0].Unmap().String(), nil
}

func refused(status int, format string, args ...any) loom.TaskResult {
	return loom.TaskResult{Status: status, Message: fmt.Sprintf(format, args...)}
}

func text(value any) string {
	s, _ := value.(string)
	return strings.TrimSpace(s)
}
