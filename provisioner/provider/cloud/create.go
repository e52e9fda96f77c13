package cloud

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"loom/app/loom"
)

// hearLimit is how long Driver.Create may take: a call that makes a machine, and what it looks
// up before.
const hearLimit = changeLimit + askLimit

// rounds is how often a machine is asked for anew after an answer was lost and no
// machine was found, by clouds without tokens.
const rounds = 3

// create returns a node its machine: the one that has its key already, else a new
// one. The provider id is reported before anything else can fail.
func (s *Session) create(ctx context.Context, spec *loom.TaskSpec, d Driver) (loom.TaskResult, error) {
	if err := Needs(spec); err != nil {
		return s.createFailure(ctx, err)
	}
	m, perhaps, err := s.obtain(ctx, spec, d)
	if err != nil {
		if ctx.Err() != nil {
			return loom.TaskResult{}, context.Cause(ctx)
		}
		return s.Error(err).result(true, perhaps), nil
	}
	facts := maps.Clone(m.Facts)
	if facts == nil {
		facts = map[string]any{}
	}
	facts["providerid"], facts["ssh-auth"] = m.ID, Auth(spec, m.Password)
	if s.endpoint != "" {
		facts[endpointFact] = s.endpoint
	}
	result := loom.TaskResult{Message: "made " + m.ID, Result: facts}
	if err := s.sink.Fact(facts); err != nil {
		return result, err
	}
	switch m.State {
	case Pending, Running:
	case Stopped, Failed, Leaving, Gone:
		result.Status, result.Message = 1, s.clean("the machine "+m.ID+" will never run: "+m.Detail)
	}
	return result, nil
}

// obtain finds or makes the machine. perhaps says of an error that a machine may
// have been made all the same.
func (s *Session) obtain(ctx context.Context, spec *loom.TaskSpec, d Driver) (m Machine, perhaps bool, err error) {
	found, err := s.find(ctx, spec, d)
	if err != nil || len(found) > 0 {
		return s.adopt(ctx, d, found), false, err
	}
	if len(spec.Place) > 0 {
		// Before a machine may be there: whoever loses the answer knows where to look.
		if err := s.sink.Fact(map[string]any{loom.PlaceFact: spec.Place}); err != nil {
			return m, false, err
		}
	}
	for round := 1; ; round++ {
		m, err := s.make(ctx, spec, d)
		if err == nil {
			s.Log("the cloud makes machine %s", m.ID)
			return m, false, nil
		}
		e := s.Error(err)
		if ctx.Err() != nil || !e.perhaps() {
			return m, perhaps, err
		}
		perhaps = true
		s.Log("%s; looking whether the machine was made", e.Message)
		if found, err = s.find(ctx, spec, d); err != nil {
			return m, true, err
		}
		if len(found) == 0 && !d.Idempotent() {
			// It may appear late.
			if err := s.Pace.Sleep(ctx, s.Pace.Appear); err != nil {
				return m, true, err
			}
			if found, err = s.find(ctx, spec, d); err != nil {
				return m, true, err
			}
		}
		if len(found) > 0 {
			return s.adopt(ctx, d, found), true, nil
		}
		if d.Idempotent() || round == rounds {
			return m, true, e
		}
	}
}

// make asks for the machine. A cancelled action still hears the answer, since it
// names the machine.
func (s *Session) make(ctx context.Context, spec *loom.TaskSpec, d Driver) (m Machine, err error) {
	again := func(e *Error) bool {
		return e.Kind == Throttled || e.passes() && (e.Before || d.Idempotent())
	}
	err = s.call(ctx, again, func(ctx context.Context) error {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), hearLimit)
		defer cancel()
		m, err = d.Create(detached, spec)
		return err
	})
	return m, err
}

// find looks for the machines of a node, the oldest first.
func (s *Session) find(ctx context.Context, spec *loom.TaskSpec, d Driver) (found []Machine, err error) {
	if spec.IdempotencyKey == "" {
		return nil, nil
	}
	err = s.Call(ctx, func(ctx context.Context) error {
		found, err = d.Find(ctx, spec.IdempotencyKey)
		return err
	})
	slices.SortStableFunc(found, func(a, b Machine) int { return cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.ID, b.ID)) })
	return found, err
}

// adopt takes the oldest machine and removes the others, which a lost answer left.
func (s *Session) adopt(ctx context.Context, d Driver, found []Machine) Machine {
	if len(found) == 0 {
		return Machine{}
	}
	s.Log("machine %s has the key of this node already", found[0].ID)
	for _, double := range found[1:] {
		s.Log("machine %s has it too and is removed", double.ID)
		err := s.Call(ctx, func(ctx context.Context) error { return d.Delete(ctx, double.ID) })
		if err != nil && !Is(err, NotFound) {
			// The end of the node looks for it again.
			s.Log("warning: machine %s could not be removed: %s", double.ID, err)
		}
	}
	return found[0]
}
