package cloud

import (
	"cmp"
	"context"
	"errors"

	"loom/app/loom"
)

// endpointFact is the result that keeps at which cloud a machine was made, so that another
// cloud, which does not know it, is not believed that it is gone.
const endpointFact = "cloud_endpoint"

// sameCloud returns an error for a machine that is not where the provider leads now and was
// made elsewhere. One that is there was made by the same cloud under another name.
func (s *Session) sameCloud(ctx context.Context, spec *loom.TaskSpec, d Driver) error {
	id, made := ID(spec), Fields(spec.Results).Text(endpointFact)
	if id == "" || made == "" || made == s.endpoint {
		return nil
	}
	m, err := s.get(ctx, d, id)
	if Is(err, NotFound) || err == nil && m.State == Gone {
		return Errorf(Refused, "machine %s was made at %s; the provider leads to %s now, where it is not. Set the address of the provider back to delete the machine, or skip this task if the machine is gone", id, made, s.here())
	}
	return err
}

// here says where the provider leads now.
func (s *Session) here() string { return cmp.Or(s.endpoint, "the usual address") }

// delete removes the node's machine, and any other that carries its key unless spec
// says that it goes alone, and waits until they are gone. What is not there is success. Wrong credentials are a
// failure if the node has a provider id: its machine would be forgotten. facts
// names further results to clear.
func (s *Session) delete(ctx context.Context, spec *loom.TaskSpec, d Driver, facts ...string) (loom.TaskResult, error) {
	if err := s.sameCloud(ctx, spec, d); err != nil {
		return s.failure(ctx, err)
	}
	var ids []string
	if id := ID(spec); id != "" {
		ids = append(ids, id)
	}
	var found []Machine
	if !spec.Alone {
		var err error
		if found, err = s.find(ctx, spec, d); err != nil {
			return s.deleteFailure(ctx, spec, err)
		}
	}
	for _, m := range found {
		if len(ids) == 0 || m.ID != ids[0] {
			s.Log("machine %s has the key of this node", m.ID)
			ids = append(ids, m.ID)
		}
	}
	for _, id := range ids {
		if err := s.remove(ctx, d, id); err != nil {
			return s.failure(ctx, err) // there is a machine, whatever the node knows of it
		}
	}
	cleared := map[string]any{"providerid": nil, "ssh-auth": nil, "ssh_host_keys": nil, "ssh_port": nil, "disks": nil, endpointFact: nil}
	for _, name := range facts {
		cleared[name] = nil
	}
	return loom.TaskResult{Result: cleared}, nil
}

// deleteFailure is the result of a DELETE that failed: success if the credentials
// are refused and the node never had a machine.
func (s *Session) deleteFailure(ctx context.Context, spec *loom.TaskSpec, err error) (loom.TaskResult, error) {
	var e *Error
	if ID(spec) == "" && ctx.Err() == nil && errors.As(err, &e) && e.Kind == Credentials {
		s.Log("warning: %s; the node never had a machine, so none is removed", e.Message)
		return loom.TaskResult{Message: "there was no machine to remove"}, nil
	}
	return s.failure(ctx, err)
}

// remove asks for the end of one machine and waits for it.
func (s *Session) remove(ctx context.Context, d Driver, id string) error {
	w := s.Pace.watch()
	asked := false
	for {
		err := s.Call(ctx, func(ctx context.Context) error {
			if asked {
				return nil
			}
			return d.Delete(ctx, id)
		})
		switch {
		case Is(err, NotFound):
			return nil
		case Is(err, Busy):
			s.Log("machine %s cannot be removed yet: %s", id, err)
		case err != nil:
			return err
		default:
			if !asked {
				s.Log("machine %s is being removed", id)
			}
			asked = true
			m, err := s.get(ctx, d, id)
			if Is(err, NotFound) || err == nil && m.State == Gone {
				return nil
			}
			if err != nil {
				return err
			}
		}
		if w.elapsed() >= s.Pace.Ready {
			return Errorf(Broken, "machine %s was not gone within %d s", id, int(s.Pace.Ready.Seconds()))
		}
		if err := w.poll(ctx); err != nil {
			return err
		}
	}
}
