package cloud

import (
	"context"
	"maps"
	"net"
	"strings"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
)

// Await waits until the node's machine runs and has an address. A node without a
// provider id is looked for by its key. Machines that failed, are gone or take
// longer than Pace.Ready are an *Error.
func (s *Session) Await(ctx context.Context, spec *loom.TaskSpec, d Driver) (Machine, error) {
	id := ID(spec)
	if id == "" {
		found, err := s.find(ctx, spec, d)
		if err != nil {
			return Machine{}, err
		}
		if len(found) == 0 {
			return Machine{}, Errorf(NotFound, "the node has no machine; CREATE has not made one")
		}
		id = found[0].ID
	}
	w := s.Pace.watch()
	said := ""
	for {
		m, err := s.get(ctx, d, id)
		switch {
		case Is(err, NotFound):
			// Clouds show a new machine a little late.
			if w.elapsed() >= s.Pace.Unseen {
				return m, Errorf(NotFound, "the cloud knows no machine %s; a quota may have been reached, or somebody removed it", id)
			}
			m.State, m.Detail = Pending, "not seen yet"
		case err != nil:
			return m, err
		case m.State == Failed || m.State == Stopped:
			return m, Errorf(Broken, "machine %s failed: %s", id, m.Detail)
		case m.State == Leaving || m.State == Gone:
			return m, Errorf(NotFound, "machine %s is gone: %s", id, m.Detail)
		case m.State == Running && m.Access != "":
			return m, nil
		case m.State == Running && w.elapsed() >= s.Pace.Unseen:
			return m, Errorf(Broken, "machine %s runs but has no address to reach it at", id)
		}
		if w.elapsed() >= s.Pace.Ready {
			return m, Errorf(Broken, "machine %s did not run within %d s (%s); a quota or the cloud's capacity may be the reason", id, int(s.Pace.Ready.Seconds()), m.Detail)
		}
		if m.Detail != said {
			said = m.Detail
			s.Log("machine %s is %s; waiting", id, said)
		}
		if err := w.poll(ctx); err != nil {
			return m, err
		}
	}
}

func (s *Session) get(ctx context.Context, d Driver, id string) (m Machine, err error) {
	err = s.Call(ctx, func(ctx context.Context) error {
		m, err = d.Get(ctx, id)
		return err
	})
	return m, err
}

// ID is the provider id of a node, "" where none is stored.
func ID(spec *loom.TaskSpec) string { return Fields(spec.Results).Text("providerid") }

// confirm carries out the shared steps of CONFIRM on a machine that runs, and then
// looks after its disks.
func (s *Session) confirm(ctx context.Context, spec *loom.TaskSpec, m Machine, disks Disks) (loom.TaskResult, error) {
	access, bind := Addresses(m.Access, m.Bind)
	result, err := provider.Confirm(ctx, spec, provider.Machine{
		Addresses: map[string]string{loom.AccessV4: access, loom.BindV4: bind},
		HostKeys:  m.HostKeys, Port: m.port(), Hostname: m.Hostname,
	}, s.sink)
	if s.LeaveDisks {
		disks = Disks{First: disks.First}
	}
	if err != nil || result.Status != 0 || disks.none() {
		return result, err
	}
	message, err := s.arrange(ctx, spec, result, disks)
	switch {
	case err != nil:
		failure, err := remote.Failure(err)
		failure.Result = result.Result
		return failure, err
	case message != "":
		result.Status, result.Message = 1, message
	}
	return result, nil
}

// arrange signs in once more, mostly on the kept connection, to set up disks.
func (s *Session) arrange(ctx context.Context, spec *loom.TaskSpec, confirmed loom.TaskResult, disks Disks) (message string, err error) {
	env := provider.EnvOf(ctx)
	as := *spec
	as.Addresses = confirmed.Addresses
	as.Results = maps.Clone(spec.Results)
	if as.Results == nil {
		as.Results = map[string]any{}
	}
	maps.Copy(as.Results, confirmed.Result)
	target, err := remote.TargetOf(&as, env.Files)
	if err != nil {
		return "", err
	}
	conn, release, err := env.Dialer.Conn(ctx, target)
	if err != nil {
		return "", err
	}
	defer release()
	return disks.arrange(ctx, conn, s)
}

// ReverseName is the host name that DNS gives for an address, "" for none: for
// provider_hostname where the cloud itself names nothing.
func ReverseName(ctx context.Context, address string) string {
	names, err := net.DefaultResolver.LookupAddr(ctx, address)
	if err != nil || len(names) == 0 {
		return ""
	}
	return strings.TrimSuffix(names[0], ".")
}

// Resolve returns the first IPv4 address of a name, "" for none.
func Resolve(ctx context.Context, name string) string {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", name)
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0].Unmap().String()
}
