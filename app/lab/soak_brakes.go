package lab

import (
	"context"
	"fmt"
	"time"

	"loom/app/clusters"
	"loom/app/fleet"
	"loom/app/loom"
)

const (
	// soakWide is how many nodes the cluster has in which single brakes are tried: enough that
	// the brakes that count bad nodes and incidents hold nothing there.
	soakWide = 80
	// soakFewRepairs is how many repairs a day the tenant of a lane has at first: fewer than
	// its clusters need at once.
	soakFewRepairs = 2
	// soakHeld is how long a repair that a brake must hold is waited for.
	soakHeld = 90 * time.Second
)

// tryBrakes has machines fail in such a way that one brake alone holds the repair. The referee
// sees it if that brake fails.
func (s *soakSerial) tryBrakes(ctx context.Context) error {
	s.cloud = s.clouds[0]
	if err := s.create(ctx, s.cloud.provider, soakWide); err != nil {
		return err
	}
	machines := s.machines()
	for _, try := range []func(context.Context, *soakMachine) error{s.tryThirdRepair, s.tryOldList} {
		if err := s.allow(ctx, loom.RepairDo); err != nil {
			return err
		}
		if err := try(ctx, machines[0]); err != nil {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
		machines = machines[1:]
	}
	return s.delete(ctx)
}

// tryThirdRepair has a node fail three times, each time in another way.
func (s *soakSerial) tryThirdRepair(ctx context.Context, m *soakMachine) error {
	for _, service := range []string{"soak-app", "soak-base"} {
		s.struck(m, service+" of one node fails")
		s.change(m, false, fails(service))
		if wrong, err := s.until(ctx, soakUnmended, true); err != nil || wrong != "" {
			return err // a fault elsewhere kept Loom from this repair
		}
	}
	s.struck(m, "the same node stops")
	s.change(m, false, stopped)
	_, err := s.until(ctx, soakHeld, true)
	return err
}

// tryOldList lets Loom start a stopped machine when the list that says so is old and somebody
// else started the machine since.
func (s *soakSerial) tryOldList(ctx context.Context, m *soakMachine) error {
	if err := s.allow(ctx, loom.RepairAsk); err != nil {
		return err
	}
	s.struck(m, "machine stopped, and started later, but hangs")
	s.change(m, false, stopped)
	for deadline := time.Now().Add(soakUnmended); !s.asked(ctx, m); {
		if time.Now().After(deadline) {
			return ctx.Err() // a fault elsewhere kept Loom from the list
		}
		if !pause(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
	s.change(m, false, func(is *soakState) { is.state, is.hung = loom.StateRunning, true })
	if !pause(ctx, soakNotice+10*time.Second) {
		return context.Cause(ctx)
	}
	if err := s.allow(ctx, loom.RepairDo); err != nil {
		return err
	}
	_, err := s.until(ctx, soakHeld, true)
	return err
}

// asked reports whether Loom asks to start a machine.
func (s *soakSerial) asked(ctx context.Context, m *soakMachine) bool {
	open := true
	incidents, err := s.lane.Fleet.Incidents(ctx, s.lane.actor, fleet.IncidentsInput{Cluster: s.cluster, Open: &open, Page: loom.Page{Limit: 100}})
	if err != nil {
		return false
	}
	for _, i := range incidents.Items {
		if i.Node == m.Node && i.Kind == loom.IncidentStopped && i.Decision == loom.RepairAsked {
			return true
		}
	}
	return false
}

// allow sets what Loom may do by itself about machines and services of the cluster.
func (s *soakSerial) allow(ctx context.Context, choice loom.RepairChoice) error {
	return again(ctx, func() error {
		_, err := s.lane.Clusters.Edit(ctx, s.lane.actor, s.cluster, clusters.EditInput{Repair: &loom.RepairPolicy{Service: choice, Stopped: choice, Gone: choice}})
		return err
	})
}

// struck counts and remembers a fault of a machine.
func (s *soakSerial) struck(m *soakMachine, fault string) {
	s.lane.soak.strike(fault)
	s.lane.remember(fmt.Sprintf("cluster %s node %s: %s", s.cluster, m.Node, fault))
}
