package static

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
	"loom/provisioner/resource"
)

// cleanScript runs what comes on standard input as a program on the machine.
const cleanScript = `f=$(mktemp /var/lib/loom-node/clean.XXXXXX) || { echo 'no file could be made for the clean-up script' >&2; exit 1; }
trap 'rm -f "$f"' EXIT
cat >"$f" && chmod 0700 "$f" || exit 1
case $(head -c 2 "$f") in
'#!') "$f" </dev/null ;;
*) sh "$f" </dev/null ;;
esac`

// maxScript is the most that is read of a clean-up script, in bytes.
const maxScript = 1 << 20

// cleanUp runs the provider's clean-up script, if it has one. A message says what
// went wrong with it.
func cleanUp(ctx context.Context, conn *remote.Conn, spec *loom.TaskSpec, sink loom.Sink) (message string, err error) {
	name := text(spec.Provider.Fields["cleanup_script"])
	if name == "" {
		return "", nil
	}
	body, err := resource.Read(provider.EnvOf(ctx).Files, "scripts", name, maxScript)
	if errors.Is(err, resource.ErrNotThere) {
		return fmt.Sprintf("the clean-up script “%s” is not there; upload it under Files and release it", name), nil
	}
	if err != nil {
		return "", fmt.Errorf("read the clean-up script: %w", err)
	}
	out, err := conn.Exec(ctx, remote.Command{
		Text: cleanScript, Root: true, Stdin: strings.NewReader(string(body)), Line: sink.Log,
		Env: map[string]string{"LOOM_HOSTNAME": spec.Hostname, "LOOM_CLUSTER_ID": spec.Ref.Operation.Cluster.String(), "LOOM_SET_USER": conn.User()},
	})
	if err != nil {
		return "", err
	}
	if !out.OK() {
		return fmt.Sprintf("the clean-up script “%s” exited with %d: %s", name, out.Code, remote.LastLine(out.Stderr)), nil
	}
	return "", nil
}

// specOf is what a question outside of tasks needs of a task.
func specOf(call *loom.ProviderCall) *loom.TaskSpec {
	return &loom.TaskSpec{Tenant: call.Tenant, Provider: call.Provider, Results: map[string]any{}, ResourceSet: call.ResourceSet, Sensitive: call.Sensitive, Reach: call.Reach}
}

// Probe looks whether each machine answers and what it is used for.
func (s *Static) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	hosts, err := parseHosts(text(call.Provider.Fields["hosts"]))
	if err != nil {
		return loom.FailedProbe("hosts", sentence(err.Error())), nil
	}
	if len(hosts) == 0 {
		return loom.FailedProbe("hosts", "No machine is named; write one per line."), nil
	}
	probe := loom.NewProbe(call.Told)
	flavors, images := map[string]bool{}, map[string]bool{}
	free, shown, bad, first := 0, 0, 0, ""
	s.look(ctx, specOf(call), hosts, func(f holding) { // one after the other, as they end
		flavors[f.host.flavor], images[f.host.image] = true, true
		ok, says := hostSays(f)
		if f.err == nil && f.state == "free" {
			free++
		}
		switch {
		case shown < mostShown:
			shown++
			probe.Check(f.host.id(), ok, says)
		case !ok:
			if bad++; bad == 1 {
				first = f.host.id() + ": " + says
			}
		}
	})
	if err := ctx.Err(); err != nil {
		return loom.Probe{}, context.Cause(ctx)
	}
	switch rest := len(hosts) - shown; {
	case bad > 0:
		probe.Check("other machines", false, fmt.Sprintf("%d of %d cannot be used, such as %s", bad, rest, first))
	case rest > 0:
		probe.Check("other machines", true, fmt.Sprintf("All %d answer.", rest))
	}
	probe.Check("free machines", true, fmt.Sprintf("%d of %d.", free, len(hosts)))
	for _, name := range sorted(flavors) {
		probe.Flavors = append(probe.Flavors, loom.ProbeFlavor{ID: name, Name: name})
	}
	for _, name := range sorted(images) {
		probe.Images = append(probe.Images, loom.ProbeImage{ID: name, Name: name})
	}
	return probe, nil
}

// mostShown is how many machines have a check of their own.
const mostShown = loom.MaxProbeChecks - 2

// hostSays is the result of looking at a machine.
func hostSays(f holding) (ok bool, says string) {
	switch {
	case f.err != nil:
		return false, sentence(f.err.Error())
	case f.state == "foreign":
		return false, "It has a directory /var/lib/loom-node that is not Loom’s; remove it there, or take the machine off the list."
	case f.state == "free":
		return true, "It answers and is free."
	}
	return true, fmt.Sprintf("It is used by cluster %s (%s).", f.record.Cluster, f.record.Name)
}

// List returns the reserved machines, and without an owner those that cannot be asked who
// has them: they are there, and the list is complete without what they would say.
func (s *Static) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	hosts, err := parseHosts(text(call.Provider.Fields["hosts"]))
	if err != nil {
		return nil, err
	}
	var machines []loom.TaggedMachine
	for _, f := range s.look(ctx, specOf(call), hosts, nil) {
		m := f.host.listed()
		switch {
		case f.err == nil && f.state != "taken" && f.state != "mine":
			continue // nobody's
		case f.err == nil:
			m.Name, m.Node, m.Key, m.Cluster, m.Tenant = f.record.Name, f.record.Node, f.record.Key, f.record.Cluster, f.record.Tenant
			m.State = loom.StateRunning
		case !concernsHost(f.err):
			return nil, fmt.Errorf("ask %s: %w", f.host.id(), f.err)
		}
		machines = append(machines, m)
	}
	return machines, nil
}

// concernsHost reports whether an error is of one host, not of the provider's settings, of
// what the tenant may reach, or of this process.
func concernsHost(err error) bool {
	var trouble *remote.Error
	return errors.As(err, &trouble) && !errors.Is(err, remote.ErrCredentials) && !errors.Is(err, remote.ErrRefused)
}

// listed is what the provider's settings say of a host.
func (h host) listed() loom.TaggedMachine {
	m := loom.TaggedMachine{ID: h.id(), Flavor: h.flavor, Image: h.image}
	for _, text := range []string{h.address, h.bind} {
		if _, err := netip.ParseAddr(text); err == nil && !slices.Contains(m.Addresses, text) {
			m.Addresses = append(m.Addresses, text)
		}
	}
	return m
}

func sorted(names map[string]bool) []string {
	var out []string
	for name := range names {
		if name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// sentence returns an error to people.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}
