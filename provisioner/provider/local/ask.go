package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// List returns the machines on record in this instance's data directory, so those
// of other instances on the host are none of them. One that is being removed is
// still there.
func (l *Local) List(context.Context, *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	states, _, err := l.readStates()
	if err != nil {
		return nil, fmt.Errorf("list the machines of %s: %w", l.host, err)
	}
	machines := make([]loom.TaggedMachine, len(states))
	for i, s := range states {
		state := loom.StateStopped
		switch {
		case s.Deleting:
			state = loom.StateOther
		case s.running():
			state = loom.StateRunning
		}
		machines[i] = loom.TaggedMachine{ID: s.ID, Name: s.Hostname, Node: s.Node, Key: s.Key, Cluster: s.Cluster, Tenant: s.Tenant,
			State: state, Flavor: s.Flavor, Image: s.Image, Addresses: []string{s.Address}}
	}
	return machines, nil
}

// Probe looks whether this host can make machines for the tenant: rights and
// programs, base roots, addresses, and what the provider's fields say.
func (l *Local) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	probe := loom.NewProbe(call.Told)
	ready := l.probeHost(&probe)
	images := l.builtImages()
	switch {
	case len(images) > 0:
		probe.Check("base roots", true, fmt.Sprintf("%d built; further images are built when they are first used.", len(images)))
	case ready:
		probe.Check("base roots", true, "None is built yet; the first machine of an image waits a minute or two for its own.")
	default:
		probe.Check("base roots", false, "None is built, and none can be until this host is ready.")
	}
	if err := l.probeAddresses(&probe, call.Tenant); err != nil {
		return loom.Probe{}, err
	}
	l.probeFields(ctx, &probe, call)
	probe.Flavors = hostFlavors(min(hostMemory(), int(l.ceilings.machine.Memory>>20)), runtime.NumCPU())
	if !slices.Contains(images, DefaultImage) {
		images = append(images, DefaultImage)
	}
	slices.Sort(images)
	for _, im := range images {
		probe.Images = append(probe.Images, loom.ProbeImage{ID: im, Name: "Debian " + strings.ReplaceAll(strings.Replace(im, ":", " with ", 1), ",", ", ")})
	}
	return probe, nil
}

// probeHost checks rights, programs and kernel and reports whether machines can
// be made.
func (l *Local) probeHost(probe *loom.Probe) bool {
	if os.Geteuid() == 0 {
		probe.Check("root", true, fmt.Sprintf("The provisioner on %s runs as root.", l.host))
	} else {
		probe.Check("root", false, loom.AsError(l.Ready()).Message)
		return false
	}
	if err := l.Ready(); err != nil {
		probe.Check("runtime", false, message(err))
		return false
	}
	probe.Check("runtime", true, "Namespaces, packet filter and mmdebstrap are there.")
	if len(l.cgroups.trees) > 0 {
		probe.Check("limits", true, "Control groups enforce the limits of flavors.")
	} else {
		// Machines work without; a person should know.
		probe.Check("limits", true, "This host has no control groups that Loom may use, so the limits of flavors are not enforced.")
	}
	return true
}

// builtImages are the images with a base root in the cache.
func (l *Local) builtImages() []string {
	files, _ := filepath.Glob(filepath.Join(l.baseDir, "*", "image"))
	var images []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// Roots of earlier formats stay in the cache and serve nobody.
		im, err := parseImage(string(data))
		if err == nil && filepath.Dir(file) == filepath.Dir(l.baseRoot(im)) {
			images = append(images, im.String())
		}
	}
	return images
}

// probeAddresses counts the addresses that the tenant has left, and the networks
// that tenants have left.
func (l *Local) probeAddresses(probe *loom.Probe, tenant loom.TenantID) error {
	const usable = 1<<(32-tenantBits) - 3 // without network, gateway and broadcast
	in, err := l.readInstance()
	if err != nil {
		return err
	}
	index, known := in.Tenants[tenant]
	if in.Range == "" || !known {
		if _, err := l.placeFor(in); err != nil {
			probe.Check("addresses", false, message(err))
			return nil
		}
		probe.Check("addresses", true, fmt.Sprintf("The tenant gets a network of its own with its first machine, for %d machines.", usable))
		return nil
	}
	home, err := in.net(l, index)
	if err != nil {
		return err
	}
	taken, err := l.addressesIn(home)
	if err != nil {
		return err
	}
	free := usable - taken
	if free <= 0 {
		probe.Check("addresses", false, fmt.Sprintf("All %d addresses of the tenant's network %s are taken; delete clusters, or use another provider.", usable, home.subnet))
		return nil
	}
	probe.Check("addresses", true, fmt.Sprintf("%d of %d addresses of the tenant's network %s are free.", free, usable, home.subnet))
	return nil
}

// probeFields checks what CREATE would read of the provider.
func (l *Local) probeFields(ctx context.Context, probe *loom.Probe, call *loom.ProviderCall) {
	fields := call.Provider.Fields
	var wrong []string
	if user := text(fields["ssh_user"]); user != "" && !userRule.MatchString(user) {
		wrong = append(wrong, fmt.Sprintf("ssh_user is “%s”, which is no name for a user; use small letters, digits, “_” and “-”", user))
	}
	if internet, err := checkbox(fields["internet"]); err != nil {
		wrong = append(wrong, fmt.Sprintf("internet: %v", err))
	} else if internet && l.noInternet {
		wrong = append(wrong, "internet is on, and the operator allows it to no local machine (LOOM_LOCAL_INTERNET)")
	}
	spec := &loom.TaskSpec{Provider: call.Provider}
	if keyResource(spec) != "" {
		if _, err := authorizedKeys(ctx, spec); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) > 0 {
		probe.Check("settings", false, strings.Join(wrong, "; ")+".")
		return
	}
	probe.Check("settings", true, "The fields of the provider are right.")
}

// hostFlavors offers sizes that this host has the memory for. Any other of the
// same form works as well.
func hostFlavors(megabytes, cpus int) []loom.ProbeFlavor {
	flavors := []loom.ProbeFlavor{}
	for _, mb := range []int{256, 512, 1024, 2048, 4096, 8192, 16384} {
		if mb > megabytes && len(flavors) > 0 {
			break
		}
		size, name := fmt.Sprintf("mem=%dm", mb), fmt.Sprintf("%d MB of memory", mb)
		if mb >= 1024 {
			size, name = fmt.Sprintf("mem=%dg", mb/1024), fmt.Sprintf("%d GB of memory", mb/1024)
		}
		flavors = append(flavors, loom.ProbeFlavor{ID: size, Name: name, VCPU: cpus, RAM: mb})
	}
	return flavors
}

// hostMemory is the memory of this host in MB, 0 if the kernel does not say.
func hostMemory() int {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kb, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return kb / 1024
		}
	}
	return 0
}

var (
	_ provider.Prober   = (*Local)(nil)
	_ provider.Lister   = (*Local)(nil)
	_ provider.Rebooter = (*Local)(nil)
)
