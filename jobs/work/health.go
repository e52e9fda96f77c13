package work

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/processes"
)

// Watcher looks at machines; package provisioner has the real one.
type Watcher interface {
	// Alive asks for a sign of life on a kept connection.
	Alive(ctx context.Context, node loom.NodeID) (alive, kept bool)
	// Look looks at a node and carries out the checks that are due.
	Look(ctx context.Context, look *loom.HealthLook, due func(service string) bool) (loom.HealthSeen, error)
}

// Times and bounds of watching nodes.
const (
	shareEvery   = 10 * time.Second // reading which nodes there are
	watchTick    = time.Second
	pingRate     = 170             // signs of life a second, where there are many nodes
	maxPings     = 1_000           // at once; a machine that does not answer holds one for 5 s
	maxLooks     = 64              // at once
	mostFailures = 3               // connections in a row that make a node unreachable
	askedPause   = 5 * time.Second // between looks that somebody asked for
	doubtAbove   = 3               // suspects, and a fifth of the nodes that answer
)

// pauseAfter are the pauses before the second and the third connection to a node that did
// not answer.
var pauseAfter = [mostFailures]time.Duration{0, 5 * time.Second, 10 * time.Second}

// health watches the share of the nodes that falls to a process. All its fields belong to the
// goroutine of run.
type health struct {
	p       *Provisioner
	process loom.ProcessID
	log     *slog.Logger
	nodes   map[loom.NodeID]*watched
	// looks and pings count those under way, ended brings them back; it has room for all, since
	// nobody takes them at the end.
	looks, pings int
	ended        chan looked
	waiting      []loom.HealthSeen // to be recorded
	readAt       time.Time
	// begunAt is when looks were last begun.
	begunAt time.Time
	doubt   bool
	// slot is that of the load which is being added up.
	slot int64
}

// watched is a node of the share.
type watched struct {
	node               loom.HealthNode
	nextPing, nextLook time.Time
	// due are the times of the next checks of services.
	due map[string]time.Time
	// nextSums is when its files are summed again.
	nextSums time.Time
	// failures counts connections in a row that failed, and failed the looks in a row that saw a
	// service fail; reached is when the last connection did not.
	failures, failed int
	reached          time.Time
	busy             bool
	// urgent says that its next look goes before those of others: somebody asked for it, the
	// machine did not answer, or a service has just begun to fail.
	urgent bool
	// asked is how many looks are still to follow within seconds because somebody asked for a
	// check: one result alone seldom changes what is known.
	asked int
	// told says that it is recorded to be changing.
	told bool
	// load adds up the load of its machine since the last point.
	load loom.LoadSum
}

// looked is what came of a look, or of a sign of life.
type looked struct {
	node loom.NodeID
	seen loom.HealthSeen
	look *loom.HealthLook
	err  error
	// ping says that it was a sign of life, alive that there was one, kept that there was a
	// connection to ask on.
	ping, alive, kept bool
}

// watch watches nodes until ctx ends.
func (l *session) watch(ctx context.Context) {
	h := &health{p: l.p, process: l.id, log: l.p.logger().With("process_id", l.id), nodes: map[loom.NodeID]*watched{}, ended: make(chan looked, maxLooks+maxPings)}
	wakeups, err := l.p.Fleet.Wakeups(ctx, l.p.DSN)
	if err != nil {
		h.log.Warn("cannot listen for wanted checks", "error", err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wakeups: // many operations may end in a second
			now := time.Now()
			again := now.Sub(h.readAt) < watchTick
			if h.readAt = (time.Time{}); !again {
				h.round(ctx, &running, now)
			}
		case e := <-h.ended:
			h.take(e, time.Now())
		case now := <-tick.C:
			h.round(ctx, &running, now)
		}
	}
}

// round reads the share when that is due, begins what is due, and records what came.
func (h *health) round(ctx context.Context, running *sync.WaitGroup, now time.Time) {
	if now.Sub(h.readAt) >= shareEvery {
		if err := h.read(ctx, now); err != nil && ctx.Err() == nil {
			h.log.Warn("cannot read which nodes to watch", "error", err)
		}
		h.readAt = now
	}
	h.judgeDoubt(now)
	h.begin(ctx, running, now)
	if err := h.record(ctx); err != nil && ctx.Err() == nil {
		h.log.Warn("cannot record the health of nodes", "error", err)
	}
	if slot := loom.LoadSlot(now); slot != h.slot {
		if err := h.recordLoad(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("cannot record the load of nodes", "error", err)
		}
		h.slot = slot
	}
	h.p.metrics().Watched(len(h.nodes), h.late(now), h.doubt)
}

// read reads the share of the process.
func (h *health) read(ctx context.Context, now time.Time) error {
	live, err := h.p.Processes.Provisioners(ctx)
	if err != nil {
		return err
	}
	all, err := h.p.Fleet.Nodes(ctx, "")
	if err != nil {
		return err
	}
	before := h.nodes
	h.nodes = make(map[loom.NodeID]*watched, len(before))
	fresh := 0
	for _, n := range all {
		if watcherOf(n, live) != h.process {
			continue
		}
		w := before[n.Node]
		switch {
		case w == nil:
			// Not all in one second: a round takes as long as their checks will.
			first := now.Add(time.Duration(fresh) * time.Second / time.Duration(h.rate()))
			w = &watched{nextLook: first, nextPing: first}
			fresh++
		case w.node.Incarnation != n.Incarnation || w.node.Operation != n.Operation || w.node.Changing != n.Changing:
			w.nextLook, w.due, w.nextSums, w.failures, w.urgent = now, nil, now, 0, true
		case n.WantedAt.After(w.node.WantedAt): // whoever asks again and again must not hide that it does not answer
			w.nextLook, w.due, w.nextSums, w.urgent, w.asked = now, nil, now, true, mostFailures
		}
		w.told = w.told && n.Changing && w.node.Operation == n.Operation
		if w.node.Incarnation != n.Incarnation {
			w.load = loom.LoadSum{}
		}
		w.node = n
		h.nodes[n.Node] = w
	}
	if h.p.Watching != nil {
		h.p.Watching(len(h.nodes))
	}
	return nil
}

// rate is how many nodes are looked at in a second at most.
func (h *health) rate() int { return max(1, h.p.HealthRate) }

// watcherOf returns the process that watches a node: each process finds the same one, and one
// that comes or goes moves its own share only. Those of the node's tenant go first; a local
// machine is watched on its host.
func watcherOf(n loom.HealthNode, live []processes.LiveProcess) loom.ProcessID {
	var best loom.ProcessID
	var most uint64
	own := false
	for _, p := range live {
		if p.Draining || p.OnlyTenant != "" && p.OnlyTenant != n.Tenant || n.LocalHost != "" && n.LocalHost != p.Host {
			continue
		}
		ownedBy := p.OnlyTenant != ""
		sum := sha256.Sum256([]byte(string(n.Node) + " " + string(p.ID)))
		weight := binary.BigEndian.Uint64(sum[:])
		if best == "" || ownedBy && !own || ownedBy == own && weight > most {
			best, most, own = p.ID, weight, ownedBy
		}
	}
	return best
}

// pingEvery is the time between two signs of life of a node.
func (h *health) pingEvery() time.Duration {
	return max(loom.PingInterval, time.Duration(len(h.nodes))*time.Second/pingRate)
}

// begin begins looks and signs of life that are due.
func (h *health) begin(ctx context.Context, running *sync.WaitGroup, now time.Time) {
	looks, pings := h.due(now, now.Sub(h.begunAt))
	h.begunAt = now
	next := now.Add(h.pingEvery())
	for _, w := range pings {
		h.ping(ctx, running, w, next)
	}
	if len(looks) == 0 {
		return
	}
	begun := make([]watched, len(looks))
	for i, w := range looks {
		w.busy, w.nextPing = true, next
		h.looks++
		begun[i] = watched{node: w.node, due: maps.Clone(w.due), nextSums: w.nextSums}
	}
	running.Go(func() { h.look(ctx, begun, now) })
}

// due finds the nodes to look at and those to ask for a sign of life, no more than may begin
// now, so long after the last time. Looks go in the order in which they are due, urgent ones
// first; who waits for one is asked for a sign of life meanwhile.
func (h *health) due(now time.Time, since time.Duration) (looks, pings []*watched) {
	for _, w := range h.nodes {
		switch {
		case w.busy:
		case w.node.Changing:
			if !w.told {
				w.told = true
				h.waiting = append(h.waiting, loom.HealthSeen{HealthNode: w.node, At: now})
			}
		case !w.nextLook.After(now):
			looks = append(looks, w)
		case !w.nextPing.After(now):
			pings = append(pings, w)
		}
	}
	slices.SortFunc(looks, func(a, b *watched) int {
		if a.urgent != b.urgent {
			return map[bool]int{true: -1, false: 1}[a.urgent]
		}
		return a.nextLook.Compare(b.nextLook)
	})
	// A tick that comes late, on a host that is busy, makes up for those that were left out.
	allowed := h.rate() * int(max(watchTick, min(since.Round(watchTick), shareEvery))/watchTick)
	n := max(0, min(len(looks), allowed, maxLooks-h.looks))
	for _, w := range looks[n:] {
		if !w.nextPing.After(now) {
			pings = append(pings, w)
		}
	}
	slices.SortFunc(pings, func(a, b *watched) int { return a.nextPing.Compare(b.nextPing) })
	return looks[:n], pings[:max(0, min(len(pings), maxPings-h.pings))]
}

// ping asks a node for a sign of life.
func (h *health) ping(ctx context.Context, running *sync.WaitGroup, w *watched, next time.Time) {
	w.busy, w.nextPing = true, next
	h.pings++
	node := w.node.Node
	running.Go(func() {
		alive, kept := h.p.Watcher.Alive(ctx, node)
		h.ended <- looked{node: node, ping: true, alive: alive, kept: kept}
	})
}

// look looks at nodes, side by side.
func (h *health) look(ctx context.Context, begun []watched, now time.Time) {
	nodes := make([]loom.HealthNode, len(begun))
	for i := range begun {
		nodes[i] = begun[i].node
	}
	looks, err := h.p.Operations.Looks(ctx, nodes)
	found := make(map[loom.NodeID]*loom.HealthLook, len(looks))
	for i := range looks {
		found[looks[i].Node] = &looks[i]
	}
	var running sync.WaitGroup
	defer running.Wait()
	for _, w := range begun {
		node, look := w.node.Node, found[w.node.Node]
		if look == nil {
			h.ended <- looked{node: node, err: cmp.Or(err, error(loom.NewError(loom.NotFound, "The node is gone.")))}
			continue
		}
		look.Sum = !w.nextSums.After(now)
		running.Go(func() {
			seen, err := h.p.Watcher.Look(ctx, look, func(service string) bool { return !w.due[service].After(now.Add(watchTick)) })
			h.ended <- looked{node: node, look: look, seen: seen, err: err}
		})
	}
}

// take takes back a look or a sign of life.
func (h *health) take(e looked, now time.Time) {
	if e.ping {
		h.pings--
	} else {
		h.looks--
	}
	w := h.nodes[e.node]
	if w == nil {
		return // it left the share
	}
	w.busy, w.urgent = false, w.urgent && e.ping
	switch {
	case e.err != nil:
		h.p.metrics().Checked("skipped")
		w.nextLook = now.Add(loom.LookInterval / 2)
		if !errors.Is(e.err, loom.NotFound) {
			h.log.Debug("a node could not be looked at", "node", e.node, "error", e.err)
		}
		return
	case e.ping && !e.alive:
		if e.kept { // else it was never connected, or only for tasks
			w.failures, w.urgent = max(1, w.failures), true
		}
		if w.nextLook.After(now) { // else it waits already
			w.nextLook = now
		}
		return
	case e.ping:
		w.reached = now
		return
	}
	h.plan(w, &e, now)
	if e.seen.Unreachable {
		h.p.metrics().Checked("unreachable")
		if w.failures++; w.failures < mostFailures {
			w.nextLook, w.urgent = now.Add(pauseAfter[w.failures]), true
			return
		}
		w.nextLook = now.Add(h.pingEvery())
	} else {
		w.failures, w.reached = 0, now
		w.load.Add(e.seen.Load)
		if !e.seen.SummedAt.IsZero() {
			w.nextSums = now.Add(loom.SumInterval)
		}
		outcome := outcomeOfLook(&e.seen)
		if w.failed++; outcome != "failed" {
			w.failed = 0
		}
		w.urgent = w.failed > 0 && w.failed < mostFailures
		h.p.metrics().Checked(outcome)
	}
	h.waiting = append(h.waiting, e.seen)
}

// plan sets the times of the next checks, and the interval that really holds.
func (h *health) plan(w *watched, e *looked, now time.Time) {
	w.asked = max(0, w.asked-1)
	stretched := time.Duration(len(h.nodes)) * time.Second / time.Duration(h.rate())
	next, shortest := time.Time{}, time.Duration(0)
	due := map[string]time.Time{}
	for _, s := range e.look.Services {
		if s.Status != "" {
			continue
		}
		if r := e.seen.Services[s.Name]; r.Checked {
			period := max(s.Check.Period(!r.Passed), e.look.Least)
			if w.asked > 0 {
				period = max(askedPause, e.look.Least)
			} else if r.Passed { // of a failure the next ones say soon whether it lasts
				period = max(period, stretched)
			}
			due[s.Name] = now.Add(period)
		} else {
			due[s.Name] = w.due[s.Name]
		}
		if next.IsZero() || due[s.Name].Before(next) {
			next = due[s.Name]
		}
		if every := time.Duration(s.Check.Interval) * time.Second; shortest == 0 || every < shortest {
			shortest = every
		}
	}
	w.due = due
	e.seen.Interval = max(cmp.Or(shortest, loom.LookInterval), stretched, e.look.Least)
	w.nextLook = now.Add(e.seen.Interval)
	if !next.IsZero() && next.Before(w.nextLook) {
		w.nextLook = next
	}
	if !w.nextLook.After(now) {
		w.nextLook = now.Add(watchTick)
	}
}

func outcomeOfLook(seen *loom.HealthSeen) string {
	if seen.Off {
		return "off"
	}
	if seen.Refused != "" {
		return "refused"
	}
	for _, s := range seen.Services {
		if s.Checked && !s.Passed {
			return "failed"
		}
	}
	return "passed"
}

// judgeDoubt says whether so many nodes do not answer that it is more likely the process.
func (h *health) judgeDoubt(now time.Time) {
	suspects, reached := 0, 0
	for _, w := range h.nodes {
		switch {
		case w.failures > 0:
			suspects++
		case !w.reached.IsZero() && now.Sub(w.reached) < loom.StaleAfter*loom.LookInterval:
			reached++
		}
	}
	doubt := suspects > max(doubtAbove, reached/5)
	if doubt && !h.doubt {
		h.log.Error("this provisioner reaches too few machines to be believed: their health is unknown until it reaches more", "suspects", suspects, "reached", reached)
	}
	if !doubt && h.doubt {
		h.log.Info("this provisioner reaches its machines again", "reached", reached)
	}
	h.doubt = doubt
}

// late counts the nodes whose look is overdue.
func (h *health) late(now time.Time) int {
	late := 0
	for _, w := range h.nodes {
		if !w.busy && !w.node.Changing && now.Sub(w.nextLook) > loom.LookInterval/2 {
			late++
		}
	}
	return late
}

// record records what was seen. What cannot be recorded is seen again.
func (h *health) record(ctx context.Context) error {
	if len(h.waiting) == 0 {
		return nil
	}
	newest := map[loom.NodeID]loom.HealthSeen{}
	var order []loom.NodeID
	for _, seen := range h.waiting {
		if _, twice := newest[seen.Node]; !twice {
			order = append(order, seen.Node)
		}
		seen.Doubted = h.doubt
		newest[seen.Node] = seen
	}
	h.waiting = nil
	var batch []loom.HealthSeen
	for _, id := range order[:min(len(order), fleet.MaxRecorded)] {
		batch = append(batch, newest[id])
	}
	for _, id := range order[len(batch):] {
		h.waiting = append(h.waiting, newest[id])
	}
	_, err := h.p.Fleet.Record(ctx, h.process, batch)
	return err
}

// recordLoad records the load of machines since the last time. What cannot be recorded is a
// gap in the day.
func (h *health) recordLoad(ctx context.Context) error {
	var points []loom.LoadPoint
	for _, w := range h.nodes {
		if mean, known := w.load.Mean(); known {
			points = append(points, loom.LoadPoint{Node: w.node.Node, Incarnation: w.node.Incarnation, Load: mean})
		}
		w.load = loom.LoadSum{}
	}
	if len(points) == 0 {
		return nil
	}
	return h.p.Fleet.RecordLoad(ctx, h.process, points)
}
