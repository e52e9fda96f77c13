package provider

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// Limits of the shared steps.
const (
	bannerLimit = 600 * time.Second
	loginLimit  = 120 * time.Second
)

//go:embed confirm.sh
var confirmScript string

//go:embed keys.sh
var keysScript string

// failScript begins the scripts.
const failScript = "fail() { echo \"$1\" >&2; exit 1; }\n"

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,253}[A-Za-z0-9])?$`)

// Confirm carries out the steps of CONFIRM that all providers share, once the
// machine runs and its addresses are known: it waits for SSH, verifies or learns
// the host keys, logs in, waits for first-boot configuration, checks the way
// out if the field connectivity_check names a host, sets the host name and puts
// the cluster's own key and spec.OwnerKeys into the user's authorized_keys. All of
// it may be repeated.
//
// The result holds the addresses, result.ssh_host_keys and result.ssh_keys. The connection comes
// from the Env of ctx (see WithEnv), so that the node's next task finds it open.
func Confirm(ctx context.Context, spec *loom.TaskSpec, m Machine, sink loom.Sink) (loom.TaskResult, error) {
	env := EnvOf(ctx)
	addresses := maps.Clone(m.Addresses)
	if addresses[loom.AccessV4] == "" {
		return loom.TaskResult{Status: 1, Message: "the machine has no address to reach it at"}, nil
	}
	if addresses[loom.BindV4] == "" {
		addresses[loom.BindV4] = addresses[loom.AccessV4]
	}
	target, err := remote.TargetOf(spec, env.Files)
	if err != nil {
		return remote.Failure(err)
	}
	target.Address, target.Port = addresses[loom.AccessV4], m.Port
	if len(m.HostKeys) > 0 {
		target.HostKeys = m.HostKeys
	}
	target.Names = append(target.Names, m.Names...)
	hostname := spec.Hostname
	if m.Hostname != "" {
		hostname = m.Hostname
		target.Names = append(target.Names, hostname)
	}

	if err := env.Handshakes.WaitBanner(ctx, target, bannerLimit); err != nil {
		return remote.Failure(err)
	}
	// Where an authority may vouch for the machine the sign-in shows whether it does.
	if len(target.HostKeys) == 0 && len(target.HostCAs) == 0 {
		if target.HostKeys, err = learn(ctx, env, target, sink); err != nil {
			return remote.Failure(err)
		}
		sayInjected(ctx, spec, target, sink)
	}
	conn, release, err := login(ctx, env, target, sink)
	if err != nil {
		return notTaken(ctx, spec, target, err)
	}
	defer release()
	target.HostKeys = shown(conn, target, sink)
	if err := allowSudo(ctx, conn); err != nil {
		return remote.Failure(err)
	}
	keys := publicKeys(spec, sink)
	if message, err := setUp(ctx, conn, spec, hostname, &keys, sink); err != nil {
		return remote.Failure(err)
	} else if message != "" {
		return loom.TaskResult{Status: 1, Message: message}, nil
	}
	sink.Log("loom", fmt.Sprintf("SSH answers at %s, signed in as %s, host name %s", target.Address, target.User, hostname))
	result := loom.TaskResult{Addresses: addresses, Hostname: m.Hostname, Result: map[string]any{"ssh_host_keys": target.HostKeys, loom.KeysFact: keys.fingerprints}}
	if keys := conn.JumpHostKeys(); keys != nil {
		result.Result["ssh_jump_host_keys"] = keys
	}
	if m.Port != 0 && m.Port != 22 {
		result.Result["ssh_port"] = m.Port
	} else if spec.Results["ssh_port"] != nil {
		result.Result["ssh_port"] = nil
	}
	return result, nil
}

// shown returns the host keys to record once the machine has been signed in to. One
// that a certificate vouches for replaces others: the machine may be a new one.
func shown(conn *remote.Conn, target remote.Target, sink loom.Sink) map[string]string {
	keys := conn.HostKeys()
	switch {
	case conn.Certified():
		sink.Log("loom", "the host key of "+target.Address+" is certified by an authority of the field ssh_host_ca")
		for kind, key := range keys {
			if target.HostKeys[kind] == key {
				return target.HostKeys
			}
		}
		return keys
	case len(target.HostKeys) == 0:
		sink.Log("loom", "warning: "+target.Address+" shows no host certificate of an authority of the field ssh_host_ca; its host key was learned on first use")
		return keys
	}
	return target.HostKeys
}

// learn takes the host keys as the machine shows them the first time.
func learn(ctx context.Context, env Env, target remote.Target, sink loom.Sink) (map[string]string, error) {
	deadline := time.Now().Add(loginLimit)
	for {
		keys, err := env.Handshakes.ScanHostKey(ctx, target)
		if err == nil {
			sink.Log("loom", "host keys of "+target.Address+" learned on first use")
			return keys, nil
		}
		if !errors.Is(err, remote.ErrUnreachable) || time.Now().After(deadline) || !pause(ctx, time.Second) {
			return nil, err
		}
	}
}

// sayInjected says of host keys that were just learned whether the machine has the one
// that it was to get. One that was found already there may not have been passed it.
func sayInjected(ctx context.Context, spec *loom.TaskSpec, target remote.Target, sink loom.Sink) {
	auth, _ := spec.Results["ssh-auth"].(map[string]any)
	key, err := InjectedHostKey(ctx, spec, auth)
	switch {
	case err != nil || key == nil:
	case key.in(target.HostKeys):
		sink.Log("loom", "it is the host key that Loom gave the machine (field "+FieldInjectHostKey+")")
	default:
		sink.Log("loom", "warning: "+target.Address+" does not show the host key that Loom gives machines (field "+FieldInjectHostKey+
			"): CREATE found it made already and cannot tell whether it was passed the key, or its image did not take it; the key that it shows was taken instead")
	}
}

// notTaken is the failure of the first sign-in. A machine that has never been signed in
// to and shows another host key than the one it was passed did not take that one.
func notTaken(ctx context.Context, spec *loom.TaskSpec, target remote.Target, err error) (loom.TaskResult, error) {
	auth, _ := spec.Results["ssh-auth"].(map[string]any)
	if !errors.Is(err, remote.ErrHostKeyChanged) || len(spec.Addresses) > 0 {
		return remote.Failure(err)
	}
	key, bad := InjectedHostKey(ctx, spec, auth)
	if bad != nil || key == nil || !key.in(target.HostKeys) {
		return remote.Failure(err)
	}
	never := false
	return loom.TaskResult{Status: 1, Retryable: &never, Message: fmt.Sprintf("%s does not show the host key that Loom passed it: its image did not take it. Use an image with cloud-init, or turn %s off for the provider; then create the machine again", target.Address, FieldInjectHostKey)}, nil
}

// login retries refusals, since the machine may still be installing the key.
func login(ctx context.Context, env Env, target remote.Target, sink loom.Sink) (*remote.Conn, func(), error) {
	begin := time.Now()
	wait := 200 * time.Millisecond
	for {
		conn, release, err := env.Dialer.Conn(ctx, target)
		if err == nil {
			return conn, release, nil
		}
		retry := errors.Is(err, remote.ErrAuth) || errors.Is(err, remote.ErrUnreachable)
		if !retry || time.Since(begin) > loginLimit {
			return nil, nil, err
		}
		if wait == 200*time.Millisecond {
			sink.Log("loom", err.Error()+"; trying again for up to "+fmt.Sprint(int(loginLimit.Seconds()))+" s")
		}
		if !pause(ctx, wait+rand.N(wait/4)) {
			return nil, nil, context.Cause(ctx)
		}
		wait = min(2*wait, 5*time.Second)
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// allowSudo makes sure that the user can become root without a terminal. Old
// images demand one ("requiretty"); that setting is taken out, over a terminal,
// only where it is in the way.
func allowSudo(ctx context.Context, conn *remote.Conn) error {
	if conn.User() == "root" {
		return nil
	}
	outcome, err := conn.Exec(ctx, remote.Command{Text: ":", Root: true})
	if err == nil && outcome.OK() {
		return nil
	}
	if err != nil && !errors.Is(err, remote.ErrSudo) {
		return err
	}
	if _, err := conn.Exec(ctx, remote.Command{Root: true, Pty: true, Text: `[ -f /etc/sudoers ] || exit 0
for f in /etc/sudoers /etc/sudoers.d/*; do
  [ -f "$f" ] && grep -q '^[[:space:]]*Defaults.*[^!]requiretty' "$f" || continue
  sed 's/^\([[:space:]]*Defaults.*[^!]requiretty\)/# \1/' "$f" >"$f.loom" && chmod 0440 "$f.loom" && mv -f "$f.loom" "$f"
done`}); err != nil {
		return err
	}
	_, err = conn.Run(ctx, "sudo", remote.Command{Text: ":", Root: true})
	return err
}

// setUp runs confirm.sh. A non-empty message says what the machine lacks.
func setUp(ctx context.Context, conn *remote.Conn, spec *loom.TaskSpec, hostname string, keys *keySet, sink loom.Sink) (message string, err error) {
	check, _ := spec.Provider.Fields["connectivity_check"].(string)
	if check == "none" {
		check = ""
	}
	if check != "" && !hostName.MatchString(check) {
		return fmt.Sprintf("provider field connectivity_check is %q; give “none” or a host name", check), nil
	}
	if hostname != "" && !hostName.MatchString(hostname) {
		return fmt.Sprintf("%q is no host name", hostname), nil
	}
	selinux := ""
	if loom.SwitchedOn(spec.Provider.Fields["selinux_permissive"]) {
		selinux = "permissive"
	}
	return runScript(ctx, conn, remote.Command{
		Text: failScript + confirmScript + keysScript, Root: true,
		Env: map[string]string{"LOOM_SET_HOSTNAME": hostname, "LOOM_SET_USER": conn.User(), "LOOM_CHECK": check, "LOOM_SELINUX": selinux},
	}, keys, sink)
}

// runScript runs a script of ours on the machine. A non-empty message says what went wrong.
func runScript(ctx context.Context, conn *remote.Conn, script remote.Command, keys *keySet, sink loom.Sink) (message string, err error) {
	script.Stdin = strings.NewReader(keys.lines)
	script.Line = func(_, text string) {
		if blob, held := strings.CutPrefix(text, keptWithOptions); held {
			keys.forget(blob, sink)
		} else if text != "" {
			sink.Log("loom", text)
		}
	}
	outcome, err := conn.Exec(ctx, script)
	if err != nil {
		return "", err
	}
	if !outcome.OK() {
		if message = remote.LastLine(outcome.Stderr); message == "" {
			message = fmt.Sprintf("setting up the machine exited with %d", outcome.Code)
		}
	}
	return message, nil
}
