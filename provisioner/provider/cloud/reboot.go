package cloud

import (
	"context"

	"loom/app/loom"
)

// RebootingProvider is the provider of a cloud whose driver is a Rebooter.
type RebootingProvider struct{ *Provider }

// NewRebooting returns the provider of a cloud whose driver is a Rebooter.
func NewRebooting(c Cloud, o Options) *RebootingProvider { return &RebootingProvider{New(c, o)} }

// Reboot starts the machine of a node or resets it, and waits until its cloud says that it
// runs.
func (p *RebootingProvider) Reboot(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	s, d, err := p.open(ctx, loom.ActionReboot, spec, sink)
	if err != nil {
		return s.failure(ctx, err)
	}
	done, err := s.reboot(ctx, spec, d)
	if err != nil {
		return s.failure(ctx, err)
	}
	return loom.TaskResult{Message: done}, nil
}

// reboot says what it did to the machine. It makes none.
func (s *Session) reboot(ctx context.Context, spec *loom.TaskSpec, d Driver) (done string, err error) {
	id := ID(spec)
	if id == "" {
		found, err := s.find(ctx, spec, d)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", Errorf(NotFound, "the node has no machine to reboot; replace the node to make one")
		}
		id = found[0].ID
	}
	w := s.Pace.watch()
	for {
		m, err := s.get(ctx, d, id)
		switch {
		case Is(err, NotFound), err == nil && (m.State == Leaving || m.State == Gone):
			return "", s.nothingToReboot(spec, id)
		case err != nil:
			return "", err
		case done != "" && m.State == Running:
			return done, nil
		case done == "" && m.State != Pending: // what is pending has begun to start, or to restart
			if done, err = s.askReboot(ctx, d, m); err != nil {
				return "", err
			}
			if done != "" {
				s.Log("%s; waiting until it runs", done)
				continue
			}
		}
		if limit := s.Pace.Ready / 2; w.elapsed() >= limit { // the other half is for the machine to go down, and up
			return "", Errorf(Broken, "machine %s did not run within %d s (%s); look at its console, or replace the node", id, int(limit.Seconds()), m.Detail)
		}
		if err := w.poll(ctx); err != nil {
			return "", err
		}
	}
}

// askReboot asks for the start or the reset of a machine; done is empty where that cannot be
// done just now.
func (s *Session) askReboot(ctx context.Context, d Driver, m Machine) (done string, err error) {
	err = s.Call(ctx, func(ctx context.Context) error { return d.(Rebooter).Reboot(ctx, m) })
	switch {
	case Is(err, Busy):
		s.Log("machine %s cannot be rebooted yet: %s", m.ID, err)
		return "", nil
	case Is(err, Refused), Is(err, Conflict):
		return "", Errorf(Refused, "machine %s is not rebooted: %s; allow the provider’s credentials to start and to reset machines, or do it by hand and retry", m.ID, err)
	case err != nil:
		return "", err
	case m.State == Stopped:
		return "machine " + m.ID + " is started", nil
	}
	return "machine " + m.ID + " is reset", nil
}

// nothingToReboot is the error of a machine that is not there.
func (s *Session) nothingToReboot(spec *loom.TaskSpec, id string) error {
	if made, now := Fields(spec.Results).Text(endpointFact), s.here(); made != "" && made != s.endpoint {
		return Errorf(Refused, "machine %s was made at %s; the provider leads to %s now, where it is not. Set the address of the provider back to reboot the machine, or replace the node", id, made, now)
	}
	return Errorf(NotFound, "machine %s does not exist any longer; replace the node to make another one", id)
}
