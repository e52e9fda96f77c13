package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// PreviewInput asks for a preview. Create is read for the kind create, Cluster
// for the others.
type PreviewInput struct {
	Kind    loom.PreviewKind
	Cluster loom.ClusterID
	Create  loom.CreateInput
	// Service is the one that a start, stop or restart names, "" for all.
	Service string
	// Services are the ones that an add_services names.
	Services []string
	// Configure is read for the kind configure.
	Configure *ConfigureInput
	// Change is read for the kinds that change the layout or follow an operation.
	Change ChangeInput
	// Abort, of a delete, would end a running operation first. That cannot be
	// previewed: what is there to delete is known only afterwards.
	Abort bool
	// ProviderFields of a kind other than create.
	ProviderFields map[string]any
}

// PreviewView is a preview as its page shows it.
type PreviewView struct {
	loom.Preview
	// Name of the cluster.
	Name string
	// Input is the request as it was stored, without sensitive fields; zero for a delete.
	Input loom.CreateInput
	// Asked is the request for a change of a cluster that is there, without provider
	// fields: what leads back to its form.
	Asked    PreviewInput
	Layout   loom.Layout
	Nodes    []loom.Node
	Services []string
	// Affected are the services that tasks of the plan are about, sorted.
	Affected []string
	// Added are the services that an add_services brings, AddedTo how many nodes get
	// any of them.
	Added   []string
	AddedTo int
	// Made, Replaced and Left are how many nodes come, get another machine and go;
	// Gone are the latter. Altered are services that are removed or upgraded, Told those
	// that are configured again on other nodes because they follow one of them.
	Made, Replaced, Left int
	Gone                 []loom.Node
	Altered, Told        []string
	// Of is the number of the operation that a retry or a rollback is about, Skipped how
	// many of its tasks a retry leaves out; Mends says that a retry changes what failed.
	Of, Skipped int
	Mends       bool
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
	Changes     []Change
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
}

// Summary says in a sentence what applying does.
func (v *PreviewView) Summary() string {
	tasks := fmt.Sprintf("runs %s in %s", count(len(v.Plan.Tasks), "task"), count(v.Plan.Levels(), "stage"))
	if v.Mends {
		return v.followed() + ", " + tasks + ". Changes nothing else."
	}
	switch v.Kind {
	case loom.PreviewDelete:
		return fmt.Sprintf("Deletes %s with all that is on it, %s. Changes nothing else.", count(len(v.Nodes), "node"), tasks)
	case loom.PreviewConfigure:
		return fmt.Sprintf("Changes the config and configures the services of %s, %s. Changes nothing else.", count(len(v.Nodes), "node"), tasks)
	case loom.PreviewAddServices:
		return fmt.Sprintf("Adds %s to %s, %s. Changes nothing else.", count(len(v.Added), "service"), count(v.AddedTo, "node"), tasks)
	case loom.PreviewStart, loom.PreviewStop, loom.PreviewRestart:
		word := map[loom.PreviewKind]string{loom.PreviewStart: "Starts", loom.PreviewStop: "Stops", loom.PreviewRestart: "Restarts"}[v.Kind]
		return fmt.Sprintf("%s %s, %s. Changes nothing else.", word, count(len(v.Affected), "service"), tasks)
	case loom.PreviewExpand, loom.PreviewShrink, loom.PreviewRemoveServices, loom.PreviewUpgrade, loom.PreviewResize, loom.PreviewRepair:
		return v.altered() + v.told() + ", " + tasks + ". Changes nothing else."
	case loom.PreviewRetry, loom.PreviewRollback:
		return v.followed() + ", " + tasks + ". Changes nothing else."
	case loom.PreviewAuthorize:
		return fmt.Sprintf("Puts your SSH keys on %s, %s. Changes nothing else.", count(v.ByAction[loom.ActionKeys], "node"), tasks)
	case loom.PreviewSync:
		return "Replaces the cluster’s copy of its template. Changes nothing on its machines."
	}
	return fmt.Sprintf("Creates %s, installs %s, %s. Changes nothing else.",
		count(len(v.Nodes), "node"), count(len(v.Services), "service"), tasks)
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// previewBody is what is stored: one of the three, by the kind of the preview.
type previewBody struct {
	Create *draft     `json:"create,omitempty"`
	Live   *liveDraft `json:"live,omitempty"`
	Sync   *syncDraft `json:"sync,omitempty"`
}

func (b *previewBody) plan() (loom.Plan, error) {
	switch {
	case b.Create != nil:
		return b.Create.plan()
	case b.Live != nil:
		return b.Live.plan()
	}
	return loom.Plan{}, nil // a sync has none
}

// digest covers everything that applying executes: the body as the database
// writes it (problem, layout, nodes, config, catalog versions), the plan and the
// revision of the cluster.
func digest(body []byte, plan loom.Plan, revision int) (string, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return "", fmt.Errorf("encode a plan: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "loom preview 1\n%d\n%d\n", revision, len(body))
	h.Write(body)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Preview works out what a request would do and keeps it, so that exactly this
// can be applied, once, for an hour. Absent provider fields are listed rather
// than refused; sensitive ones are not stored and must come again with Apply.
// Errors: Invalid, NotFound, Conflict (the cluster is in the wrong state),
// Exhausted, Unsolvable, Unavailable.
func (u *Clusters) Preview(ctx context.Context, actor loom.Actor, in PreviewInput) (PreviewView, error) {
	if err := actor.May(loom.Operate.Reading(), actor.Mine()); err != nil {
		return PreviewView{}, err
	}
	p, body, plan, err := u.draft(ctx, actor, in)
	if err != nil {
		return PreviewView{}, err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return PreviewView{}, fmt.Errorf("encode preview %s: %w", p.ID, err)
	}
	if data, err = store.CanonicalJSON(ctx, u.db, data); err != nil {
		return PreviewView{}, err
	}
	if p.Hash, err = digest(data, plan, p.Revision); err != nil {
		return PreviewView{}, err
	}
	p, err = store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Preview, error) {
		return store.InsertPreview(ctx, tx, actor.Tenant, p, data, u.opts.PreviewLife)
	})
	if err != nil {
		return PreviewView{}, err
	}
	return u.view(ctx, actor, p, body, plan)
}

// PreviewByID reads a preview of the actor. NotFound for those of others, for
// one about a cluster that he may not see now, and for one that expired; one that was applied stays readable until it is trimmed, and
// says which operation it became.
func (u *Clusters) PreviewByID(ctx context.Context, actor loom.Actor, id loom.PreviewID) (PreviewView, error) {
	p, _, body, err := u.loadPreview(ctx, actor, id)
	if err != nil {
		return PreviewView{}, err
	}
	plan, err := body.plan()
	if err != nil {
		return PreviewView{}, err
	}
	return u.view(ctx, actor, p, body, plan)
}

// noKind says which kinds of previews there are.
func noKind() string {
	words := make([]string, len(loom.PreviewKinds))
	for i, k := range loom.PreviewKinds {
		words[i] = string(k)
	}
	return "There are previews of the kinds " + strings.Join(words, ", ") + "."
}

// loadPreview gives a preview with its body, as stored and decoded.
func (u *Clusters) loadPreview(ctx context.Context, actor loom.Actor, id loom.PreviewID) (loom.Preview, []byte, *previewBody, error) {
	if err := actor.May(loom.Operate.Reading(), actor.Mine()); err != nil {
		return loom.Preview{}, nil, nil, err
	}
	p, data, err := u.seePreview(ctx, actor, id)
	if err != nil {
		return loom.Preview{}, nil, nil, err
	}
	var body previewBody
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		return loom.Preview{}, nil, nil, fmt.Errorf("decode preview %s: %w", p.ID, err)
	}
	if body.Create == nil && body.Live == nil && body.Sync == nil {
		// Made by a release that wrote it otherwise.
		return loom.Preview{}, nil, nil, noPreview(loom.NewError(loom.NotFound, "the body of preview %s is unknown", p.ID))
	}
	if err := u.readProvider(ctx, actor, p, &body); err != nil {
		return loom.Preview{}, nil, nil, err
	}
	if err := u.replan(ctx, actor, p, &body); err != nil {
		return loom.Preview{}, nil, nil, err
	}
	return p, data, &body, nil
}

// seePreview reads a preview, and NotFound where the actor may not see what it is about.
func (u *Clusters) seePreview(ctx context.Context, actor loom.Actor, id loom.PreviewID) (loom.Preview, []byte, error) {
	p, data, err := store.PreviewByID(ctx, u.db, actor.Tenant, actor.User, id)
	if err != nil {
		return loom.Preview{}, nil, noPreview(err)
	}
	// The actor may have lost the sight of the cluster since; one to be made is not there yet.
	if p.Kind != loom.PreviewCreate || p.Applied.Number != 0 {
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

func (u *Clusters) view(ctx context.Context, actor loom.Actor, p loom.Preview, body *previewBody, plan loom.Plan) (PreviewView, error) {
	v := PreviewView{Preview: p, Plan: plan, ByAction: map[loom.TaskAction]int{}, Asked: body.asked(p)}
	affected := map[string]bool{}
	for _, t := range plan.Tasks {
		v.ByAction[t.Action]++
		if t.Service != "" {
			affected[t.Service] = true
		}
	}
	v.Affected = sortedNames(affected)
	var err error
	if v.Before, err = store.QuotaUse(ctx, u.db, actor.Tenant); err != nil {
		return v, err
	}
	v.After = v.Before
	var list changeList
	switch {
	case body.Create != nil:
		d := body.Create
		v.Name, v.Input, v.Layout, v.Nodes = d.Input.Name, d.Input, d.Layout, d.Nodes
		v.Services, v.Template, v.Provider = sortedNames(d.Services), d.Template.Base, d.Provider.Base
		v.Config, _ = loom.MaskSecrets(d.Config).(map[string]any)
		v.LeaseMillis, v.Warnings, v.Price, v.OnFailure = d.Lease, d.Warnings, d.Price, d.policy()
		v.After.Clusters++
		v.After.Nodes += len(d.Nodes)
		list.wholeNodes("create", v.Nodes)
		v.Missing, err = u.stillMissing(ctx, d)
	case body.Live != nil:
		err = u.viewLive(ctx, actor, &v, body.Live, &list)
	case body.Sync != nil:
		d := body.Sync
		v.Name, v.Nodes, v.Services, v.Layout = d.Name, d.Nodes, d.Services, layoutOf(d.Nodes)
		v.Template, v.Provider, v.Warnings = d.After.Base, loom.Base{Name: d.Provider}, d.Warnings
		list.documents("template", "", document(d.Before), document(d.After))
	}
	if err != nil {
		return v, err
	}
	v.Changes, v.ChangeCount = list.kept, list.all
	return v, u.expect(ctx, actor, &v, body)
}

// stillMissing lists what Apply must be given: sensitive fields that the request
// brought, and required ones that it did not.
func (u *Clusters) stillMissing(ctx context.Context, d *draft) ([]map[string]loom.FieldSchema, error) {
	t, err := store.ProviderType(ctx, u.db, d.Provider.Type)
	if err != nil {
		if isNotFound(err) {
			return nil, nil // Apply will say that the preview is stale
		}
		return nil, err
	}
	if again := absentSensitive(t, d.Sensitive, nil); len(again) > 0 {
		return []map[string]loom.FieldSchema{again}, nil
	}
	return takeFields(t, d.Provider, nil, nil).missing, nil
}

// absentSensitive gives the schemas of the named fields that are not given.
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
