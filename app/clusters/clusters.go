// Package clusters is what people do to clusters: check, preview, apply, create,
// configure and delete them, run their services, and read everything about them.
//
// It authorizes, decides and owns the transactions; reads are authorized as
// well: what an actor may not see answers NotFound. It must not run tasks (that
// is package execution) nor save catalog entries. A newcomer's usual mistake: calling
// solver or planner inside a transaction. Both work on what was read before it,
// and the transaction checks that what was read still holds.
package clusters

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/places"
	"loom/app/secret"
	"loom/app/store"
)

// Defaults of Options.
const (
	DefaultMaxMachines = 10_000
	DefaultPreviewLife = time.Hour
	DefaultCheckTime   = 2 * time.Second
	DefaultSolveTime   = 30 * time.Second
)

// Options of the use cases; zero values take the defaults.
type Options struct {
	// MaxMachines is the largest cluster of this installation.
	MaxMachines int
	// PreviewLife is how long a preview can be applied.
	PreviewLife time.Duration
	// CheckTime and SolveTime limit the search of a form check, and of a preview
	// or request.
	CheckTime, SolveTime time.Duration
	// SearchDone, unless nil, is called with the duration of each search for a layout, for
	// metrics.
	SearchDone func(took time.Duration)
}

// Clusters are the use cases. It keeps no state of its own and is safe for
// concurrent use.
type Clusters struct {
	db *sqlx.DB
	q  sqlx.ExtContext // what is read from: db, or the transaction of a fleet preview
	// fleet is what a fleet preview has read already, nil otherwise.
	fleet *fleet
	kept  *store.Kept // for what pages read again and again
	ring  *secret.Ring
	opts  Options
	// searching are the searches for a layout that run.
	searching *places.Places
	// fleets are the fleet previews that run.
	fleets *places.Places
}

// New makes the use cases on a database; ring seals what clusters keep secret.
func New(db *sqlx.DB, ring *secret.Ring, opts Options) *Clusters {
	if opts.MaxMachines == 0 {
		opts.MaxMachines = DefaultMaxMachines
	}
	if opts.PreviewLife == 0 {
		opts.PreviewLife = DefaultPreviewLife
	}
	if opts.CheckTime == 0 {
		opts.CheckTime = DefaultCheckTime
	}
	if opts.SolveTime == 0 {
		opts.SolveTime = DefaultSolveTime
	}
	if opts.SearchDone == nil {
		opts.SearchDone = func(time.Duration) {}
	}
	return &Clusters{db: db, q: db, kept: store.Keep(db), ring: ring, opts: opts, searching: places.New(searches()), fleets: places.NewFor(2, 1)}
}

// searches is how many run at once: as many as there are processors, and a few where
// there are hardly any, since one that takes long must not hold up the short ones.
func searches() int { return max(runtime.GOMAXPROCS(0), 4) }

// startSearch begins a search for a layout that may take as long as limit, with what it
// waits for a place; where none comes free, the context has ended. over ends the search
// and says how long it took; calling it again does nothing.
func (u *Clusters) startSearch(ctx context.Context, tenant loom.TenantID, limit time.Duration) (solving context.Context, over func()) {
	solving, cancel := context.WithTimeout(ctx, limit)
	placed := u.searching.Take(solving, tenant)
	began := time.Now()
	return solving, sync.OnceFunc(func() {
		cancel()
		if !placed {
			return
		}
		u.searching.Give(tenant)
		u.opts.SearchDone(time.Since(began))
	})
}

// noCluster is the answer for clusters that are not there and for those the
// actor may not know of: the two must not differ.
func noCluster(id loom.ClusterID) error {
	return loom.NewError(loom.NotFound, "There is no cluster %s.", id)
}

// see checks that the actor may read the cluster.
func (u *Clusters) see(ctx context.Context, actor loom.Actor, id loom.ClusterID) error {
	return u.May(ctx, actor, loom.See, id)
}

// May returns nil where the actor may do something with a cluster. Errors: NotFound for one that
// he may not see, Forbidden.
func (u *Clusters) May(ctx context.Context, actor loom.Actor, verb loom.Verb, id loom.ClusterID) error {
	o, err := objectOf(ctx, u.kept, actor.Tenant, id)
	return allowed(actor, verb, id, o, err)
}

// allowed asks whether the actor may do something to a cluster that was read, unless that
// failed, and turns "not there" and "not yours" into the same NotFound.
func allowed(actor loom.Actor, verb loom.Verb, id loom.ClusterID, o loom.Object, err error) error {
	if err == nil {
		err = actor.May(verb, o)
	}
	if isNotFound(err) {
		return noCluster(id)
	}
	return err
}

// verbOf is what a change of a cluster needs.
func verbOf(kind loom.ChangeKind) loom.Verb {
	if kind == loom.ChangeDelete {
		return loom.Own
	}
	return loom.Operate
}

func isNotFound(err error) bool { return errors.Is(err, loom.NotFound) }

// clusterEvents tell open pages that a cluster changed.
func clusterEvents(tenant loom.TenantID, id loom.ClusterID) []loom.Event {
	return []loom.Event{
		{Tenant: tenant, Topic: "clusters", IDs: []string{id.String()}},
		{Tenant: tenant, Topic: "cluster:" + id.String()},
		{Tenant: tenant, Topic: "tenant"},
	}
}

// MaySeeTopic returns NotFound unless the actor may follow a topic of live
// updates. Topics without ids are those of the actor's tenant,
// "system" is for superadmins.
func (u *Clusters) MaySeeTopic(ctx context.Context, actor loom.Actor, topic string) error {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return err
	}
	unknown := loom.NewError(loom.NotFound, "There is no topic “%.60s”.", topic)
	switch topic {
	case "clusters", "tenant", "user:me":
		return nil
	case "rollouts":
		if actor.May(loom.Operate.Reading(), actor.InTenant()) == nil {
			return nil
		}
		return unknown
	case "system":
		if actor.May(loom.Install.Reading(), loom.Installation) == nil {
			return nil
		}
		return unknown
	}
	kind, rest, _ := strings.Cut(topic, ":")
	if kind == "rollout" {
		number, _ := strconv.Atoi(rest)
		if _, err := u.Rollout(ctx, actor, number); err != nil || strconv.Itoa(number) != rest {
			return unknown
		}
		return nil
	}
	parts := strings.Split(rest, "/")
	id, ok := loom.ParseClusterID(parts[0])
	wanted := map[string]int{"cluster": 1, "op": 2, "log": 4}[kind]
	if !ok || len(parts) != wanted {
		return unknown
	}
	for _, part := range parts[1:] {
		if n, err := strconv.Atoi(part); err != nil || n <= 0 {
			return unknown
		}
	}
	err := u.see(ctx, actor, id)
	if isNotFound(err) {
		return unknown
	}
	return err
}
