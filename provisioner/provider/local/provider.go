package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/resource"
)

// confirmSteps are the steps of CONFIRM that all providers share.
var confirmSteps = provider.Confirm

var (
	userRule = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	hostRule = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,253}[A-Za-z0-9])?$`)
)

// layout is that of the form.
var layout = loom.FieldLayout{{Group: loom.SectionMachines, Names: []string{"internet", "ssh_user", "ssh_key_resource"}}}

// Type describes the provider type for the catalog.
func (l *Local) Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: TypeName, Label: "This host",
			Description: "Makes machines on the host that Loom runs on, without a cloud: each has its own address, host name, files and processes, and is up in a fraction of a second."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {
				Fields: layout.Of(map[string]loom.FieldSchema{
					"ssh_user": {Label: "User on the machines", Type: "text", Role: loom.RolePlace, Default: loom.DefaultSSHUser, Pattern: userRule.String(),
						Tip: "Loom signs in as this user. One other than root is made on each machine and may use sudo without a password."},
					"ssh_key_resource": {Label: "SSH key", Type: "resource", ResourceType: "ssh_keys", Role: loom.RolePlace,
						Tip: "The private key that opens the machines. Leave empty to have Loom make a key pair for each cluster."},
					"internet": {Label: "Machines may reach the internet", Type: "checkbox", Default: false,
						Tip: "When on, machines reach public addresses, such as package registries, private networks where the tenant may, and what the operator names. They never reach the host itself or machines of other tenants."},
				}),
				Required: [][]string{{}},
			},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{{}}},
		},
		ResourceTypes: map[string]loom.ResourceType{"ssh_keys": {Format: "file", Permissions: "0400"}},
	}
}

// Create makes and boots a machine, or adopts the one that has the task's
// idempotency key. It does not wait for sshd to answer; Confirm does.
func (l *Local) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	if result, ok := l.elsewhere(spec); !ok {
		return result, nil
	}
	if err := l.Ready(); err != nil {
		return refused(err), nil
	}
	s, err := l.newState(ctx, spec)
	if err != nil {
		return refused(err), nil
	}
	facts := map[string]any{"providerid": s.ID, "local_host": l.host}
	if err := sink.Fact(maps.Clone(facts)); err != nil {
		return loom.TaskResult{}, err
	}
	log := func(line string) { sink.Log("loom", line) }
	auth := map[string]any{"user": s.SSHUser}
	if name := keyResource(spec); name != "" {
		auth["identityfile"] = "ssh_keys/" + name
	}
	facts["ssh-auth"] = auth

	im, err := parseImage(s.Image)
	if err != nil {
		return refused(err), nil
	}
	if err := l.ensureBase(ctx, s.Tenant, im, log); err != nil {
		return l.failed(ctx, facts, err)
	}
	unlock, err := l.lockMachine(ctx, s.ID)
	if err != nil {
		return l.failed(ctx, facts, err)
	}
	defer unlock()
	known, err := l.readState(s.ID)
	if err == nil && known.Deleting {
		if err = l.remove(ctx, known); err == nil {
			err = os.ErrNotExist
		}
	}
	switch {
	case err == nil && known.Key != s.Key:
		return l.failed(ctx, facts, fmt.Errorf("machine id %s belongs to another machine", s.ID))
	case err == nil:
		log(fmt.Sprintf("Machine %s exists already and is used.", s.ID))
		s = known
	case isGone(err):
		if err = l.reserve.Check(l.dataDir, "The machine is not made", 0); err == nil {
			err = l.record(ctx, s)
		}
		if err == nil {
			log(fmt.Sprintf("Machine %s gets the address %s.", s.ID, s.Address))
		}
	}
	runs := false
	if err == nil {
		runs, err = l.settle(ctx, s)
	}
	if err == nil && !runs {
		if err = l.boot(ctx, s, log); err == nil {
			log(fmt.Sprintf("Machine %s is up.", s.ID))
		}
	}
	if err != nil {
		return l.failed(ctx, facts, err)
	}
	return loom.TaskResult{Result: facts}, nil
}

// Confirm boots the machine if it does not run, then takes the steps that all
// providers share.
func (l *Local) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	if result, ok := l.elsewhere(spec); !ok {
		return result, nil
	}
	if err := l.Ready(); err != nil {
		return refused(err), nil
	}
	id := text(spec.Results["providerid"])
	s, err := l.find(id, spec.IdempotencyKey)
	if err == nil && s != nil {
		s, err = l.bootIfDown(ctx, s.ID, func(line string) { sink.Log("loom", line) })
	}
	if err != nil {
		return l.failed(ctx, nil, err)
	}
	if s == nil {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("machine %s of %s no longer exists on %s", id, spec.Hostname, l.host)}, nil
	}
	awaitPort(ctx, s.Address)
	l.spare(s)
	as := *spec
	as.Reach.Machine = l.Address(spec)
	return l.confirm(ctx, &as, provider.Machine{
		Addresses: map[string]string{loom.AccessV4: s.Address, loom.BindV4: s.Address},
		HostKeys:  map[string]string{"ed25519": s.HostKey},
	}, sink)
}

// Reboot boots the machine again, with its files; one that runs is stopped first.
func (l *Local) Reboot(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	if result, ok := l.elsewhere(spec); !ok {
		return result, nil
	}
	if err := l.Ready(); err != nil {
		return loom.TaskResult{Status: 1, Message: loom.AsError(err).Message}, nil
	}
	id := text(spec.Results["providerid"])
	s, err := l.find(id, spec.IdempotencyKey)
	if err == nil && s != nil {
		s, err = l.restart(ctx, s.ID, func(line string) { sink.Log("loom", line) })
	}
	if err != nil {
		return l.failed(ctx, nil, err)
	}
	if s == nil {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("machine %s of %s does not exist on %s any longer; replace the node to make another one", id, spec.Hostname, l.host)}, nil
	}
	return loom.TaskResult{Message: "machine " + s.ID + " is up"}, nil
}

// Delete stops the machine and removes everything of it.
func (l *Local) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	gone := loom.TaskResult{Result: map[string]any{"providerid": nil, "ssh-auth": nil, "ssh_host_keys": nil, "local_host": nil}}
	if text(spec.Results["providerid"]) == "" && spec.IdempotencyKey == "" {
		return gone, nil
	}
	if result, ok := l.elsewhere(spec); !ok {
		return result, nil
	}
	id := text(spec.Results["providerid"])
	s, err := l.find(id, spec.IdempotencyKey)
	if err != nil {
		return l.failed(ctx, nil, err)
	}
	if s == nil || spec.Alone && s.ID != id {
		return gone, nil
	}
	if err := l.Ready(); err != nil {
		return loom.TaskResult{Status: 1, Message: loom.AsError(err).Message}, nil
	}
	unlock, err := l.lockMachine(ctx, s.ID)
	if err != nil {
		return l.failed(ctx, nil, err)
	}
	defer unlock()
	// Read again: someone else may have removed or booted it in between.
	id = s.ID
	s, err = l.readState(id)
	if isGone(err) {
		return gone, nil
	}
	if err == nil {
		err = l.remove(ctx, s)
	}
	if err != nil {
		return l.failed(ctx, nil, fmt.Errorf("machine %s is not removed yet: %w", id, err))
	}
	return gone, nil
}

// newState describes the machine that a task asks for. Errors are the
// request's: nothing was made yet.
func (l *Local) newState(ctx context.Context, spec *loom.TaskSpec) (*state, error) {
	if spec.IdempotencyKey == "" {
		return nil, errors.New("the task has no idempotency key")
	}
	if !hostRule.MatchString(spec.Hostname) {
		return nil, fmt.Errorf("%q is no host name", spec.Hostname)
	}
	limits, err := parseFlavor(spec.Flavor)
	if err != nil {
		return nil, fmt.Errorf("flavor “%s” of hardware type “%s”: %w; the form is mem=512m,pids=256,cpu=100,cores=1,disk=4g", spec.Flavor, spec.HardwareType, err)
	}
	if limits, err = l.ceilings.bound(limits); err != nil {
		return nil, fmt.Errorf("flavor “%s” of hardware type “%s”: %w", spec.Flavor, spec.HardwareType, err)
	}
	im, err := parseImage(spec.Image)
	if err != nil {
		return nil, fmt.Errorf("image “%s” of image type “%s”: %w; the form is bookworm:nginx-light,haproxy", spec.Image, spec.ImageType, err)
	}
	user := text(spec.Provider.Fields["ssh_user"])
	if user == "" {
		user = spec.SSHUser
	}
	if user == "" {
		user = loom.DefaultSSHUser
	}
	if !userRule.MatchString(user) {
		return nil, fmt.Errorf("“%s” is no name for the user of a machine; use small letters, digits, “_” and “-”", user)
	}
	keys, err := authorizedKeys(ctx, spec)
	if err != nil {
		return nil, err
	}
	internet, err := checkbox(spec.Provider.Fields["internet"])
	if err != nil {
		return nil, fmt.Errorf("field internet of provider “%s”: %w", spec.Provider.Name, err)
	}
	if internet && l.noInternet {
		return nil, fmt.Errorf("field internet of provider “%s”: local machines may not reach the internet in this installation (LOOM_LOCAL_INTERNET); switch it off", spec.Provider.Name)
	}
	return &state{
		ID: machineID(spec.IdempotencyKey), Key: spec.IdempotencyKey, Node: spec.Node, Cluster: spec.Ref.Operation.Cluster.String(),
		Tenant: spec.Tenant, Hostname: spec.Hostname, AuthorizedKeys: keys, SSHUser: user, Limits: limits,
		Image: im.String(), Flavor: spec.Flavor, Internet: internet, PublicOnly: !spec.Reach.Private, Created: time.Now().UTC(),
	}, nil
}

// authorizedKeys are the keys that Loom itself signs in with: the cluster's own
// and the one that belongs to the provider's ssh_key_resource.
func authorizedKeys(ctx context.Context, spec *loom.TaskSpec) ([]string, error) {
	var keys []string
	if spec.PublicKey != "" {
		key, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(spec.PublicKey))
		if err != nil {
			return nil, fmt.Errorf("the cluster's public key is not in authorized_keys form: %w", err)
		}
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
		keys = append(keys, strings.TrimSpace(line+" "+strings.Join(strings.Fields(comment), " ")))
	}
	if name := keyResource(spec); name != "" {
		pem, err := resource.Read(provider.EnvOf(ctx).Files, "ssh_keys", name, 64<<10)
		if err != nil {
			return nil, fmt.Errorf("the SSH key “%s” that the provider names is not among the tenant's resources of type ssh_keys; upload it and sync", name)
		}
		signer, err := ssh.ParsePrivateKey(pem)
		if err != nil {
			return nil, fmt.Errorf("the resource “%s” is no private SSH key without a passphrase", name)
		}
		keys = append(keys, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))))
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no SSH key for the machine: the cluster has none and the provider names no ssh_key_resource")
	}
	return slices.Compact(keys), nil
}

// keyResource is the name of the provider's key resource; old data holds paths.
func keyResource(spec *loom.TaskSpec) string {
	if name := text(spec.Provider.Fields["ssh_key_resource"]); name != "" {
		return filepath.Base(name)
	}
	return ""
}

// elsewhere fails a task whose machine was made on another host.
func (l *Local) elsewhere(spec *loom.TaskSpec) (loom.TaskResult, bool) {
	host := text(spec.Results["local_host"])
	if host == "" || host == l.host {
		return loom.TaskResult{}, true
	}
	return loom.TaskResult{Status: 1, Message: fmt.Sprintf(
		"the machine is on host %s and this provisioner runs on %s; local machines need all provisioners on one host", host, l.host)}, false
}

// refused is the result of a CREATE that made nothing, and would not next time.
func refused(err error) loom.TaskResult {
	never := false
	return loom.TaskResult{Status: 200, Message: message(err), Stderr: err.Error(), Retryable: &never}
}

// failed turns an error into the task's result. A context that is over, and
// trouble of the host such as a full disk, are the provisioner's own.
func (l *Local) failed(ctx context.Context, facts map[string]any, err error) (loom.TaskResult, error) {
	if ctx.Err() != nil {
		return loom.TaskResult{Result: facts}, context.Cause(ctx)
	}
	if isHostTrouble(err) {
		return loom.TaskResult{Result: facts}, err
	}
	return loom.TaskResult{Status: 1, Message: message(err), Stderr: err.Error(), Result: facts}, nil
}

// message is the part of an error for people.
func message(err error) string {
	var e *loom.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// text reads a field as text; anything else counts as absent.
func text(value any) string {
	s, _ := value.(string)
	return strings.TrimSpace(s)
}

// checkbox reads the forms in which a checkbox arrives.
func checkbox(value any) (bool, error) {
	switch v := value.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "on":
			return true, nil
		case "false", "off", "":
			return false, nil
		}
	}
	return false, fmt.Errorf("“%v” is neither true nor false", value)
}

// awaitPort waits, for a moment, until sshd listens: it is some milliseconds
// behind the machine itself, and a first dial that fails costs far more. What
// does not answer is left to the shared steps to report.
func awaitPort(ctx context.Context, address string) {
	deadline := time.Now().Add(10 * time.Second)
	dialer := net.Dialer{Timeout: 250 * time.Millisecond}
	for ctx.Err() == nil && time.Now().Before(deadline) {
		if conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, "22")); err == nil {
			conn.Close()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Millisecond):
		}
	}
}
