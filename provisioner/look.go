package provisioner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/health"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
)

// aliveLimit is how long a machine has for a sign of life, and for a new connection.
const aliveLimit = 5 * time.Second

// Alive asks the machine of a node for a sign of life on the connection that is kept for it;
// kept is false where there is none.
func (r *Runner) Alive(ctx context.Context, node loom.NodeID) (alive, kept bool) {
	return r.Pool.Alive(ctx, node, aliveLimit)
}

// Look looks at a node and carries out the checks that are due. It learns no host key and
// changes nothing on the machine. An error says that nothing was seen: the process ends, or it
// has no time, no file or no session for the look. A machine that does not answer is no error.
func (r *Runner) Look(ctx context.Context, look *loom.HealthLook, due func(service string) bool) (seen loom.HealthSeen, err error) {
	seen = loom.HealthSeen{HealthNode: look.HealthNode, Load: loom.NoLoad, Services: map[string]loom.ServiceSeen{}}
	defer func() { seen.At = time.Now() }()
	if look.Off || look.Trouble != "" {
		seen.Off, seen.Refused = look.Off, look.Trouble
		return seen, nil
	}
	spec := r.lookSpec(look.Spec)
	p, ok := r.Providers.Get(spec.Provider.Type)
	if !ok {
		return seen, errors.New(r.Providers.Missing(spec.Provider.Type))
	}
	if w, ok := p.(provider.Watched); ok {
		return r.askProvider(ctx, w, spec, look, due, seen)
	}
	set, release, err := r.lookFiles(ctx, spec)
	if err != nil {
		return seen, err
	}
	defer release()
	target, err := remote.TargetOf(spec, below(set, "providertypes", spec.Provider.Type))
	if err != nil {
		return refused(ctx, seen, err)
	}
	switch {
	case target.Address == "":
		seen.Refused = "The machine has no address."
		return seen, nil
	case len(target.HostKeys) == 0 && len(target.HostCAs) == 0:
		return seen, errors.New("no host key is recorded yet")
	}
	return r.lookAt(ctx, target, spec, look, due, seen)
}

// lookSpec returns a spec with what the installation says of what may be connected to.
func (r *Runner) lookSpec(spec *loom.TaskSpec) *loom.TaskSpec {
	given := *spec
	given.Reach = r.reach(given.Reach)
	if h, ok := r.localMachines(given.Provider.Type); ok {
		given.Reach.Machine = h.Address(&given)
	}
	return &given
}

// lookFiles returns the directory of the tenant's files until release is called.
func (r *Runner) lookFiles(ctx context.Context, spec *loom.TaskSpec) (set string, release func(), err error) {
	if r.Cache == nil || spec.ResourceSet == 0 {
		return r.Files, func() {}, nil
	}
	set, _, release, err = r.Cache.Set(ctx, spec.Tenant, spec.ResourceSet)
	return set, release, err
}

// lookAt signs in to a machine and looks.
func (r *Runner) lookAt(ctx context.Context, target remote.Target, spec *loom.TaskSpec, look *loom.HealthLook, due func(string) bool, seen loom.HealthSeen) (loom.HealthSeen, error) {
	connecting, cancel := context.WithTimeoutCause(ctx, aliveLimit, errTimedOut)
	defer cancel()
	conn, release, err := r.Pool.Conn(connecting, target)
	if err != nil {
		return refused(ctx, seen, err)
	}
	defer release()
	var commands []health.Command
	for _, s := range look.Services {
		if text := r.commandOf(spec, s); text != "" && s.Status == "" && due(s.Name) {
			commands = append(commands, health.Command{Service: s.Name, Text: text, Timeout: time.Duration(s.Check.Timeout) * time.Second})
		}
	}
	var files []string
	if look.Sum {
		seen.SummedAt = time.Now()
		for _, s := range look.Services {
			files = append(files, s.Files...)
		}
	}
	found, err := health.Look(ctx, conn, commands, files)
	if err != nil {
		return seen, err
	}
	seen.BootID, seen.Load = found.BootID, r.loadOf(spec, found)
	redactor := NewRedactor(sensitive(spec)...)
	machine := health.Machine{Target: target, Hostname: spec.Hostname}
	for _, address := range spec.Addresses {
		machine.Addresses = append(machine.Addresses, address)
	}
	for _, s := range look.Services {
		result, checked := found.Services[s.Name]
		limit := time.Duration(s.Check.Timeout) * time.Second
		switch {
		case s.Status != "" || checked || !due(s.Name):
		case s.Check.HTTP != nil:
			first, last, err := s.Check.HTTP.Statuses()
			if err != nil {
				result, checked = health.Result{Message: err.Error()}, true
				break
			}
			result, checked = health.Fetch(ctx, r.Pool.Dialer(), machine, health.Request{URL: s.Check.HTTP.URL, First: first, Last: last, Contains: s.Check.HTTP.Contains, Timeout: limit}), true
		case s.Check.TCP != nil:
			result, checked = health.Open(ctx, r.Pool.Dialer(), machine, s.Check.TCP.Port, limit), true
		}
		if ctx.Err() != nil {
			return seen, context.Cause(ctx)
		}
		seen.Services[s.Name] = loom.ServiceSeen{Status: s.Status, Check: s.Check, Checked: checked, Passed: result.Passed, Message: redactor.Text(result.Message), Files: sumsOf(look, s, found)}
	}
	return seen, nil
}

// sumsOf are the sums of the files of a service, nil where they were not asked for.
func sumsOf(look *loom.HealthLook, s loom.ServiceLook, found health.Seen) loom.FileSums {
	if !look.Sum || len(s.Files) == 0 {
		return nil
	}
	sums := loom.FileSums{}
	for _, path := range s.Files {
		sum, known := found.Files[path]
		if !known {
			sum = loom.SumUnknown
		}
		sums[path] = sum
	}
	return sums
}

// loadOf returns the load of a machine. A local machine sees that of its host, so its provider
// says.
func (r *Runner) loadOf(spec *loom.TaskSpec, found health.Seen) loom.Load {
	if h, local := r.localMachines(spec.Provider.Type); local {
		return h.Load(spec)
	}
	return found.Load
}

// commandOf returns the shell text of the check of a service, "" for one that does without.
func (r *Runner) commandOf(spec *loom.TaskSpec, s loom.ServiceLook) string {
	if s.Check.Command == "" && !s.Container {
		return ""
	}
	if a, ok := r.Automators.Get(s.Action.Type); ok {
		if c, ok := a.(automator.Checker); ok {
			of := *spec
			of.Service = &loom.TaskService{Name: s.Name, Action: s.Action}
			return c.CheckText(&of, s.Check.Command)
		}
	}
	return s.Check.Command
}

// refused is what was seen of a machine that could not be signed in to.
func refused(ctx context.Context, seen loom.HealthSeen, err error) (loom.HealthSeen, error) {
	var trouble *remote.Error
	switch {
	case ctx.Err() != nil:
		return seen, context.Cause(ctx)
	case errors.Is(err, remote.ErrUnreachable), errors.Is(err, remote.ErrLost), errors.Is(err, errTimedOut), errors.Is(err, context.DeadlineExceeded):
		seen.Unreachable = true
		return seen, nil
	case errors.As(err, &trouble):
		seen.Refused = firstLine(trouble.Text)
		return seen, nil
	}
	return seen, fmt.Errorf("look at node %s: %w", seen.Node, err)
}

// askProvider asks a provider about a machine that nobody signs in to.
func (r *Runner) askProvider(ctx context.Context, w provider.Watched, spec *loom.TaskSpec, look *loom.HealthLook, due func(string) bool, seen loom.HealthSeen) (loom.HealthSeen, error) {
	answers, failing, err := w.Look(ctx, spec)
	if err != nil || !answers {
		seen.Unreachable = true
		return seen, err
	}
	for _, s := range look.Services {
		r := loom.ServiceSeen{Status: s.Status, Check: s.Check, Checked: s.Status == "" && due(s.Name), Passed: true}
		if slices.Contains(failing, s.Name) {
			r.Passed, r.Message = false, "The service does not work."
		}
		seen.Services[s.Name] = r
	}
	return seen, nil
}
