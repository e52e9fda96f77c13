package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// PreviewView is a preview as its page shows it.
type PreviewView struct {
	loom.Preview
	// Name of the cluster.
	Name string
	// Input is the request as it was stored, without sensitive fields; zero for a delete.
	Input loom.CreateInput
	// Request is the request for a change of a cluster that is there, without provider
	// fields: what leads back to its form.
	Request  PreviewInput
	Layout   loom.Layout
	Nodes    []loom.Node
	Services []string
	// Affected are the services that tasks of the plan are about, sorted.
	Affected []string
	// Added are the services that an add_services brings, AddedTo how many nodes get
	// any of them.
	Added   []string
	AddedTo int
	// NodesAdded, NodesReplaced and NodesRemoved count the nodes that come, get another
	// machine and go; RemovedNodes are the latter. Changed are the services that are removed
	// or upgraded, Reconfigured those configured again because they follow one of them.
	NodesAdded, NodesReplaced, NodesRemoved int
	RemovedNodes                            []loom.Node
	Changed, Reconfigured                   []string
	// Of is the number of the operation that a retry or a rollback is about, Skipped how
	// many of its tasks a retry leaves out; Amends reports that a retry changes what failed.
	Of, Skipped int
	Amends      bool
	// Newest are the services that it takes in another version, Removed those that it
	// takes off.
	Newest, Removed []string
	// OnFailure is what a failure of the operation does, as the request or the template
	// says; "" where there is no operation.
	OnFailure string
	Template  loom.Base
	Provider  loom.Base
	// Config has values of keys that look secret masked.
	Config map[string]any
	// LeaseMillis is 0 for a cluster that never expires.
	LeaseMillis int64
	Plan        loom.Plan
	ByAction    map[loom.TaskAction]int
	// Changes are what happens to what, nodes first, and at most the first 1,000;
	// ChangeCount counts all.
	Changes     []ChangeLine
	ChangeCount int
	// Before and After are the quota now and once applied.
	Before, After loom.QuotaUse
	Warnings      []string
	// Missing are the provider fields that Apply must be given, by required set.
	Missing []map[string]loom.FieldSchema
	Price   *float64
	// Expected is how long the plan takes if it goes as such tasks did before; it
	// is known only where there were some.
	Expected time.Duration
	Known    bool

	// Lead is the first half of its summary: "Creates 3 nodes, installs 2 services".
	Lead string
}

// Summary says in a sentence what applying does.
func (v *PreviewView) Summary() string {
	if v.Kind == loom.ChangeSync {
		return v.Lead + ". Changes nothing on its machines."
	}
	return fmt.Sprintf("%s, runs %s in %s. Changes nothing else.", v.Lead, count(len(v.Plan.Tasks), "task"), count(v.Plan.Levels(), "stage"))
}

// Effect is the first part of the summary: "Creates 3 nodes, installs 2 services."
func (v *PreviewView) Effect() string { return v.Lead + "." }

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// digest covers everything that applying executes: whose preview it is, the body as the
// database writes it (problem, layout, nodes, config, catalog versions), the plan and the
// revision of the cluster.
func digest(p loom.Preview, body []byte, plan loom.Plan) (string, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return "", fmt.Errorf("encode a plan: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "loom preview 2\n%q %q\n%d\n%d\n", p.Owner.Tenant, p.Owner.User, p.Revision, len(body))
	h.Write(body)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Preview works out what a request would do and stores it, so that exactly this
// can be applied, once, for an hour, unless the user makes very many others. Absent provider
// fields are listed rather than refused; sensitive ones are not stored and must come again
// with Apply.
// Errors: Invalid, NotFound, Conflict (the cluster is in the wrong state),
// Exhausted, Unsolvable, Unavailable.
func (u *Clusters) Preview(ctx context.Context, actor loom.Actor, in PreviewInput) (PreviewView, error) {
	if err := actor.May(loom.Operate.Reading(), actor.Mine()); err != nil {
		return PreviewView{}, err
	}
	p, data, c, err := u.hashed(ctx, actor, in)
	if err != nil {
		return PreviewView{}, err
	}
	if p, err = u.keep(ctx, p, data); err != nil {
		return PreviewView{}, err
	}
	return u.view(ctx, actor, p, c)
}

// hashed works out a preview with its hash, and its body as it is stored.
func (u *Clusters) hashed(ctx context.Context, actor loom.Actor, in PreviewInput) (loom.Preview, []byte, *change, error) {
	p, c, err := u.preview(ctx, actor, in)
	if err != nil {
		return p, nil, nil, err
	}
	data, err := u.hash(ctx, &p, c)
	return p, data, c, err
}

// hash sets the hash of a preview, and returns its body as it is stored.
func (u *Clusters) hash(ctx context.Context, p *loom.Preview, c *change) ([]byte, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode preview %s: %w", p.ID, err)
	}
	if data, err = store.CanonicalJSON(ctx, u.q, data); err != nil {
		return nil, err
	}
	p.Hash, err = digest(*p, data, c.plan)
	return data, err
}

// keep stores a preview for a while.
func (u *Clusters) keep(ctx context.Context, p loom.Preview, data []byte) (loom.Preview, error) {
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Preview, error) {
		return store.InsertPreview(ctx, tx, p.Owner.Tenant, p, data, u.opts.PreviewLife)
	})
}

// PreviewByID reads a preview of the actor. NotFound for those of others, for
// one about a cluster that he may not see now, and for one that expired; one that was applied stays readable until it is trimmed, and
// says which operation it became.
func (u *Clusters) PreviewByID(ctx context.Context, actor loom.Actor, id loom.PreviewID) (PreviewView, error) {
	p, _, c, err := u.loadPreview(ctx, actor, id)
	if err != nil {
		return PreviewView{}, err
	}
	return u.view(ctx, actor, p, c)
}

// loadPreview reads a preview with its body, as stored and decoded, and makes its plan.
func (u *Clusters) loadPreview(ctx context.Context, actor loom.Actor, id loom.PreviewID) (loom.Preview, []byte, *change, error) {
	if err := actor.May(loom.Operate.Reading(), actor.Mine()); err != nil {
		return loom.Preview{}, nil, nil, err
	}
	p, data, err := u.seePreview(ctx, actor, id)
	if err != nil {
		return loom.Preview{}, nil, nil, err
	}
	var c change
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	// A release that wrote previews otherwise made what cannot be read, or has no kind.
	if err := d.Decode(&c); err != nil || c.Kind != p.Kind || kindOf(&c) == nil {
		err = errors.Join(loom.NewError(loom.NotFound, "the body of preview %s is unknown", p.ID), err)
		return loom.Preview{}, nil, nil, noPreview(err)
	}
	c.of = kindOf(&c)
	if err := u.readProvider(ctx, actor, &c); err != nil {
		return loom.Preview{}, nil, nil, err
	}
	return p, data, &c, u.makePlan(ctx, actor.Tenant, &c)
}

// seePreview reads a preview, and NotFound where the actor may not see what it is about.
func (u *Clusters) seePreview(ctx context.Context, actor loom.Actor, id loom.PreviewID) (loom.Preview, []byte, error) {
	p, data, err := store.PreviewByID(ctx, u.q, actor.Tenant, actor.User, id)
	if err != nil {
		return loom.Preview{}, nil, noPreview(err)
	}
	// The actor may have lost the sight of the cluster since; one to be made is not there yet.
	if p.Kind != loom.ChangeCreate || p.Applied.Number != 0 {
		if err := u.see(ctx, actor, p.Cluster); err != nil {
			return loom.Preview{}, nil, noPreview(err)
		}
	}
	return p, data, nil
}

func noPreview(err error) error {
	if isNotFound(err) {
		return &loom.Error{Kind: loom.NotFound, Message: "There is no such preview, or it expired; compute it again.", Err: err}
	}
	return err
}

// Discard drops a preview of the actor. NotFound as PreviewByID, and for one that
// was applied.
func (u *Clusters) Discard(ctx context.Context, actor loom.Actor, id loom.PreviewID) error {
	if err := actor.May(loom.Operate.Reading(), actor.Mine()); err != nil {
		return err
	}
	if _, _, err := u.seePreview(ctx, actor, id); err != nil {
		return err
	}
	return store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		return noPreview(store.DeletePreview(ctx, tx, actor.Tenant, actor.User, id))
	})
}

func (u *Clusters) view(ctx context.Context, actor loom.Actor, p loom.Preview, c *change) (PreviewView, error) {
	shown := c.shown()
	v := PreviewView{
		Preview: p, Plan: c.plan, ByAction: map[loom.TaskAction]int{}, Request: c.Input, Name: c.Name, Template: c.Template, Provider: c.Provider.Base,
		Nodes: shown.Nodes, Services: sortedNames(shown.Services), Warnings: c.Warnings, OnFailure: c.OnFailure,
	}
	affected := map[string]bool{}
	for _, t := range c.plan.Tasks {
		v.ByAction[t.Action]++
		if t.Service != "" {
			affected[t.Service] = true
		}
	}
	v.Affected = sortedNames(affected)
	if c.SetsConfig {
		v.Config = c.secrets().Mask(c.After.Config)
	}
	var err error
	if v.Before, err = store.QuotaUse(ctx, u.q, actor.Tenant); err != nil {
		return v, err
	}
	v.After = v.Before
	var list changeList
	if err := c.of.show(&v, c, &list); err != nil {
		return v, err
	}
	c.showFollowed(&v)
	v.Changes, v.ChangeCount, v.Lead = list.lines, list.all, c.of.summary(&v)
	if c.Action == "" {
		return v, nil
	}
	if v.Missing, err = u.missingFields(ctx, actor, c); err != nil {
		return v, err
	}
	return v, u.estimate(ctx, actor, &v, c)
}

// showFollowed says what of the earlier operation is continued or undone.
func (c *change) showFollowed(v *PreviewView) {
	f := c.Followed
	if f == nil {
		return
	}
	v.Of, v.Skipped, v.Amends, v.Newest, v.Removed = f.Of, len(f.skipped), f.Amends, f.Newest, f.Removed
	if c.Action == loom.ClusterDelete || c.Kind == loom.ChangeRollback && len(c.After.Nodes) == 0 {
		v.After.Clusters--
	}
}

// missingFields lists what Apply must be given, beside what the cluster has stored:
// sensitive fields that the request brought, and required ones that it did not.
func (u *Clusters) missingFields(ctx context.Context, actor loom.Actor, c *change) ([]map[string]loom.FieldSchema, error) {
	t, err := store.ProviderType(ctx, u.q, c.Provider.Type)
	if err != nil {
		if isNotFound(err) {
			return nil, nil // Apply will say so
		}
		return nil, err
	}
	if again := absentSensitive(t, c.Sensitive, nil); len(again) > 0 {
		return []map[string]loom.FieldSchema{again}, nil
	}
	stored, err := store.Secrets(ctx, u.q, actor.Tenant, store.ClusterSecrets(c.Cluster))
	if err != nil {
		return nil, err
	}
	return takeFields(t, withFields(c.Provider, c.Fields), sortedNames(stored), nil).missing, nil
}

// absentSensitive returns the schemas of the named fields that are not given.
func absentSensitive(t loom.PluginType, names []string, given map[string]loom.Secret) map[string]loom.FieldSchema {
	absent := map[string]loom.FieldSchema{}
	settable := settableFields(t, loom.Provider{}) // what it gave once, it may give again
	for _, name := range names {
		if _, ok := given[name]; !ok {
			absent[name] = settable[name]
		}
	}
	return absent
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// estimate estimates how long the plan takes from how long such tasks took before.
func (u *Clusters) estimate(ctx context.Context, actor loom.Actor, v *PreviewView, c *change) error {
	if len(v.Plan.Tasks) == 0 {
		return nil
	}
	tenant, err := store.Tenant(ctx, u.q, actor.Tenant)
	if err != nil {
		return err
	}
	byKind, byAction, err := store.TypicalDurations(ctx, u.q, actor.Tenant, c.Provider.Type)
	if err != nil {
		return err
	}
	v.Expected, v.Known = planner.EstimateDuration(v.Plan, tenant.Workers, func(service string, action loom.TaskAction, _ loom.NodeID) (time.Duration, bool) {
		if c, ok := byKind[store.TaskKind{Service: service, Action: action}]; ok {
			return c, true
		}
		c, ok := byAction[action]
		return c, ok
	})
	return nil
}
