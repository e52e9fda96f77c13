package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"loom/app/loom"
)

// adoptions are the machines that are not put in order yet after a start of this
// process.
type adoptions struct {
	mu   sync.Mutex
	open map[string]*adoption
}

// adoption is what is still to be done for one machine. Who needs it first does it.
type adoption struct {
	begun bool
	done  chan struct{}
}

// Adopt puts the host in order when a process starts: machines that run are
// kept, those that should run are booted with their address, keys and files,
// removals that were cut short are finished and leftovers cleaned. It goes on
// after an error and returns all of them. Without machines it needs no root.
func (l *Local) Adopt(ctx context.Context) error {
	var mu sync.Mutex
	var errs []error
	wait, err := l.AdoptBeside(ctx, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	})
	if err != nil {
		return err
	}
	wait()
	return errors.Join(errs...)
}

// AdoptBeside begins what Adopt does and returns when it is known which machines there
// are; from then on Adopted waits. tell gets one error after the other. The function that
// it gives returns when all is done, or soon after the end of ctx.
//
// Machines are booted in turns: those of a tenant take half of the places, so a tenant
// whose machines do not come up keeps nobody else waiting.
func (l *Local) AdoptBeside(ctx context.Context, tell func(error)) (wait func(), err error) {
	states, leftovers, err := l.readStates()
	if err != nil {
		return nil, err
	}
	if len(states) == 0 && len(leftovers) == 0 && os.Geteuid() != 0 {
		return func() {}, nil
	}
	if err := l.Ready(); err != nil {
		return nil, err
	}
	l.adoptions.mu.Lock()
	l.adoptions.open = map[string]*adoption{}
	for _, s := range states {
		if !s.Deleting {
			l.adoptions.open[s.ID] = &adoption{done: make(chan struct{})}
		}
	}
	l.adoptions.mu.Unlock()
	var work sync.WaitGroup
	work.Go(func() { l.finishRemovals(ctx, tell) })
	turns := map[loom.TenantID]chan struct{}{}
	for _, s := range states {
		if s.Deleting {
			continue
		}
		if turns[s.Tenant] == nil {
			turns[s.Tenant] = make(chan struct{}, max(1, cap(l.boots)/2))
		}
		turn := turns[s.Tenant]
		work.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			if err := l.adoptOnce(ctx, s.ID); err != nil {
				tell(err)
			}
		})
	}
	return work.Wait, nil
}

// Adopted returns when the machine of a task is in order after a start of this process,
// as far as it can be; what is wrong is for the task to find. Other machines are not
// waited for.
func (l *Local) Adopted(ctx context.Context, spec *loom.TaskSpec) error {
	l.adoptions.mu.Lock()
	none := len(l.adoptions.open) == 0
	l.adoptions.mu.Unlock()
	if none || spec.IdempotencyKey == "" {
		return nil
	}
	s, err := l.find(text(spec.Results["providerid"]), spec.IdempotencyKey)
	if err != nil || s == nil {
		return err
	}
	_ = l.adoptOnce(ctx, s.ID)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// adoptOnce adopts a machine, or waits for who does. The error is for who did.
func (l *Local) adoptOnce(ctx context.Context, id string) error {
	l.adoptions.mu.Lock()
	a := l.adoptions.open[id]
	mine := a != nil && !a.begun
	if mine {
		a.begun = true
	}
	l.adoptions.mu.Unlock()
	switch {
	case a == nil:
		return nil
	case !mine:
		select {
		case <-a.done:
		case <-ctx.Done():
		}
		return nil
	}
	defer func() {
		l.adoptions.mu.Lock()
		delete(l.adoptions.open, id)
		l.adoptions.mu.Unlock()
		close(a.done)
	}()
	s, err := l.readState(id)
	if isGone(err) || err == nil && s.Deleting {
		return nil
	}
	if err == nil {
		err = l.adopt(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("machine %s is not started again: %w", id, err)
	}
	return nil
}

// adopt keeps a machine that runs, and boots one that should.
func (l *Local) adopt(ctx context.Context, s *state) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if s.running() && !s.starting() {
		connected, err := l.reconnect(ctx, s)
		if err != nil || connected {
			l.spare(s)
			return err
		}
		// Without its cable nobody will ever reach it again.
		if err := l.halt(s, deadAfterDelete); err != nil {
			return err
		}
	}
	if s.Stopped != "" {
		return nil
	}
	booted, err := l.bootIfDown(ctx, s.ID, func(string) {})
	if err != nil {
		return err
	}
	if booted != nil {
		awaitPort(ctx, booted.Address)
		l.spare(booted)
	}
	return nil
}
