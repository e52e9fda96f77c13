package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// ApplyInput names a preview, the hash its maker saw, and the provider fields
// that were not stored with it.
type ApplyInput struct {
	ID             loom.PreviewID
	Hash           string
	ProviderFields map[string]any
}

// stale says that a preview can no longer be executed as it was shown.
type stale struct{ differs []string }

func (s *stale) Error() string { return "stale preview: " + strings.Join(s.differs, " ") }

// Apply executes exactly what a preview showed, at most once. A sync has no
// operation: its reference has the number 0. Errors: Invalid
// (another hash, provider fields missing), NotFound (expired, not the actor's),
// Exhausted, and Conflict: for a second apply, naming the operation of the
// first; for a catalog or cluster that changed, with what differs and the id of a fresh
// preview, as far as one can be made.
func (u *Clusters) Apply(ctx context.Context, actor loom.Actor, in ApplyInput) (loom.OperationRef, error) {
	var none loom.OperationRef
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return none, err
	}
	if in.Hash == "" {
		return none, loom.InvalidFields([]loom.FieldError{{Field: "hash", Message: "Send the hash of the preview that you saw."}})
	}
	if errs := checkStorable("providerFields", in.ProviderFields); len(errs) > 0 {
		return none, loom.InvalidFields(errs)
	}
	p, data, c, err := u.loadPreview(ctx, actor, in.ID)
	if err != nil {
		return none, err
	}
	if !p.AppliedAt.IsZero() {
		return none, alreadyApplied(p)
	}
	if in.Hash != p.Hash {
		return none, loom.NewError(loom.Conflict, "The hash does not match the stored preview. Load the preview again.")
	}
	hash, err := digest(p, data, c.plan)
	if err != nil {
		return none, err
	}
	if hash != p.Hash {
		return none, u.refresh(ctx, actor, c, in.ProviderFields, &stale{[]string{"Loom itself was updated and plans differently now."}})
	}
	// Whoever waited for the lock sees what the one before him did.
	return u.applyOrRefresh(ctx, actor, p, c, in.ProviderFields, func(tx *sqlx.Tx) error {
		locked, _, err := store.LockPreview(ctx, tx, actor.Tenant, actor.User, p.ID)
		if err != nil {
			return noPreview(err)
		}
		if !locked.AppliedAt.IsZero() {
			return alreadyApplied(locked)
		}
		return nil
	})
}

// ApplyUnsaved stores the preview of a request and applies it in the same transaction, if
// its hash is the one that PreviewUnsaved gave to the same actor. Otherwise
// the preview is stored and waits for Apply. Provider fields of the request count as those of
// Apply. Errors: those of Preview and of Apply; Conflict with the id of the preview where the hash
// is another.
func (u *Clusters) ApplyUnsaved(ctx context.Context, actor loom.Actor, in PreviewInput, hash string) (loom.PreviewID, loom.OperationRef, error) {
	var none loom.OperationRef
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return "", none, err
	}
	given := in.ProviderFields
	in.ProviderFields = nil
	p, data, c, err := u.hashed(ctx, actor, in)
	if err != nil {
		return "", none, err
	}
	if hash != p.Hash || !keepsMachines(c.plan) {
		if p, err = u.keep(ctx, p, data); err != nil {
			return "", none, err
		}
		return "", none, &loom.Error{Kind: loom.Conflict, Message: "Things changed after this was shown.", Preview: p.ID}
	}
	ref, err := u.applyOrRefresh(ctx, actor, p, c, given, func(tx *sqlx.Tx) error {
		_, err := store.InsertPreview(ctx, tx, actor.Tenant, p, data, u.opts.PreviewLife)
		return err
	})
	return p.ID, ref, err
}

// applyOrRefresh executes a change, or answers with a fresh preview where things changed in
// between. hold takes hold of the stored preview in the transaction.
func (u *Clusters) applyOrRefresh(ctx context.Context, actor loom.Actor, p loom.Preview, c *change, given map[string]any, hold func(tx *sqlx.Tx) error) (loom.OperationRef, error) {
	ref, err := u.applyChange(ctx, actor, p, c, given, hold)
	var old *stale
	if errors.As(err, &old) {
		return loom.OperationRef{}, u.refresh(ctx, actor, c, given, old)
	}
	return ref, err
}

func alreadyApplied(p loom.Preview) error {
	if p.Applied.Number == 0 {
		return loom.NewError(loom.Conflict, "This preview was applied already.")
	}
	return loom.NewError(loom.Conflict, "This preview was applied already: it became operation %s.", p.Applied)
}

// applyChange executes a change, whose plan was made outside the transaction.
func (u *Clusters) applyChange(ctx context.Context, actor loom.Actor, p loom.Preview, c *change, given map[string]any, hold func(tx *sqlx.Tx) error) (loom.OperationRef, error) {
	var none loom.OperationRef
	var err error
	var secrets map[string][]byte
	if c.Kind == loom.ChangeCreate {
		secrets, err = u.applyCreateFields(ctx, actor, c, given)
	} else {
		given, err = u.applyFields(ctx, c, given)
	}
	if err != nil {
		return none, err
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.OperationRef, error) {
		if err := c.lockQuota(ctx, tx, actor.Tenant); err != nil {
			return none, err
		}
		if err := hold(tx); err != nil {
			return none, err
		}
		ref, err := loom.OperationRef{Cluster: p.Cluster}, error(nil)
		seen := loom.Cluster{ID: p.Cluster, Revision: p.Revision}
		switch c.Kind {
		case loom.ChangeCreate:
			ref, err = u.applyCreate(ctx, tx, actor, c, secrets)
		case loom.ChangeSync:
			err = u.sync(ctx, tx, actor, seen, c, "sync")
		default:
			ref, err = u.begin(ctx, tx, actor, seen, c, given, "apply")
		}
		if errors.Is(err, errClusterChanged) {
			err = &stale{[]string{"The cluster changed after the preview was made."}}
		}
		if err != nil {
			return none, err
		}
		return ref, store.MarkPreviewApplied(ctx, tx, actor.Tenant, p.ID, ref.Number)
	})
}

// compareVersions says in sentences which entries are no longer what they were.
func compareVersions(then, now []store.EntryVersion) []string {
	newest := map[store.EntryVersion]int{}
	for _, v := range now {
		newest[store.EntryVersion{Kind: v.Kind, Name: v.Name}] = v.Version
	}
	var differs []string
	for _, v := range then {
		n := newest[store.EntryVersion{Kind: v.Kind, Name: v.Name}]
		switch {
		case n == 0:
			differs = append(differs, fmt.Sprintf("The %s “%s” is gone.", v.Kind.Word(), v.Name))
		case n != v.Version:
			differs = append(differs, fmt.Sprintf("The %s “%s” is now version %d, not %d.", v.Kind.Word(), v.Name, n, v.Version))
		}
	}
	return differs
}

// refresh makes a new preview of the same request and answers with it.
func (u *Clusters) refresh(ctx context.Context, actor loom.Actor, c *change, given map[string]any, old *stale) error {
	in := c.Input
	if c.Kind == loom.ChangeCreate {
		in.Create.ProviderFields = map[string]any{}
		maps.Copy(in.Create.ProviderFields, given)
		maps.Copy(in.Create.ProviderFields, c.Input.Create.ProviderFields)
	} else {
		in.ProviderFields = map[string]any{}
		maps.Copy(in.ProviderFields, c.Fields)
		maps.Copy(in.ProviderFields, given)
	}
	message := strings.Join(slices.Concat([]string{"Things changed after this preview was made."}, old.differs), " ")
	conflict := &loom.Error{Kind: loom.Conflict, Message: message, Err: old}
	fresh, err := u.Preview(ctx, actor, in)
	if err != nil {
		// The request no longer works at all; say so instead of a new preview.
		e := loom.AsError(err)
		if e.Kind == loom.Internal || e.Kind == loom.Unavailable {
			return err
		}
		conflict.Message += " The change is no longer possible: " + e.Message
		conflict.Unsat, conflict.Fields, conflict.Missing = e.Unsat, e.Fields, e.Missing
		return conflict
	}
	conflict.Preview = fresh.ID
	return conflict
}

// applyFields joins the provider fields of a preview with those that come with
// Apply. Invalid, with missing fields, unless the sensitive ones come again.
func (u *Clusters) applyFields(ctx context.Context, c *change, given map[string]any) (map[string]any, error) {
	if len(c.Fields) == 0 && len(c.Sensitive) == 0 {
		return given, nil
	}
	t, err := store.ProviderType(ctx, u.q, c.Provider.Type)
	if err != nil {
		return nil, err
	}
	fields := takeFields(t, c.Provider, nil, given)
	if err := loom.InvalidFields(fields.errs); err != nil {
		return nil, err
	}
	if again := absentSensitive(t, c.Sensitive, fields.sealed); len(again) > 0 {
		return nil, missingError([]map[string]loom.FieldSchema{again})
	}
	all := maps.Clone(c.Fields)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, given)
	return all, nil
}

// Begin begins at once what a preview of the request would show: an operation on a
// cluster that exists. Errors: those of Preview; NotFound for the operation that a retry or
// a rollback names; Invalid with the missing provider fields.
func (u *Clusters) Begin(ctx context.Context, actor loom.Actor, in PreviewInput) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	if n := in.Change.Operation; n > 0 {
		if err := u.seeOperation(ctx, actor, loom.OperationRef{Cluster: in.Cluster, Number: n}); err != nil {
			return loom.OperationRef{}, err
		}
	}
	ref, _, err := u.execute(ctx, actor, in, conditions{})
	return ref, err
}

// errClusterChanged says that the cluster changed between reading it and locking it.
var errClusterChanged = errors.New("the cluster has changed")

// maxReads is how often a request at once reads a cluster again that keeps moving.
const maxReads = 3

func keepsChanging() error {
	return loom.NewError(loom.Conflict, "The cluster keeps changing; try again.")
}

// conditions are those under which an operation begins; nil ones hold.
type conditions struct {
	// still is asked about the cluster as it was read; without it nothing begins, and that is
	// no error.
	still func(c loom.Cluster) bool
	// allow is called first in the transaction that begins the operation, begun last; an error
	// ends it.
	allow func(ctx context.Context, tx *sqlx.Tx) error
	begun func(ctx context.Context, tx *sqlx.Tx, ref loom.OperationRef) error
}

// execute works out and begins an operation in one go, as applying its preview would,
// provided that the conditions hold. It returns the cluster as it was read.
func (u *Clusters) execute(ctx context.Context, actor loom.Actor, in PreviewInput, when conditions) (loom.OperationRef, loom.Cluster, error) {
	var none loom.OperationRef
	verb := "update"
	if in.Kind == loom.ChangeDelete {
		verb = "delete"
	}
	// Reading and planning happen outside the transaction; when the cluster moved
	// before its lock was had, all is read once more.
	for try := 0; ; try++ {
		given := in
		given.ProviderFields = nil // those are taken under the lock, sensitive ones as well
		c, cluster, err := u.changeOf(ctx, actor, given)
		if err != nil || when.still != nil && !when.still(cluster) {
			return none, cluster, err
		}
		if c.Action == "" {
			return none, cluster, loom.NewError(loom.Invalid, "“%.40s” begins no operation.", in.Kind)
		}
		ref, err := store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.OperationRef, error) {
			if when.allow != nil {
				if err := when.allow(ctx, tx); err != nil {
					return none, err
				}
			}
			if err := c.lockQuota(ctx, tx, actor.Tenant); err != nil {
				return none, err
			}
			ref, err := u.begin(ctx, tx, actor, cluster, c, in.ProviderFields, verb)
			if err != nil || when.begun == nil {
				return ref, err
			}
			return ref, when.begun(ctx, tx, ref)
		})
		var old *stale
		if errors.Is(err, errClusterChanged) || errors.As(err, &old) {
			if try < maxReads {
				continue
			}
			err = keepsChanging()
		}
		return ref, cluster, err
	}
}

// lockQuota queues operations that need more of the tenant's quota of nodes: its
// lock comes before that of the cluster.
func (c *change) lockQuota(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) error {
	if c.more() == 0 {
		return nil
	}
	_, err := store.LockTenant(ctx, tx, tenant)
	return err
}

// snapshot reads the layout of a cluster, whose lock the caller holds: the nodes
// that have or may have a machine.
func snapshot(ctx context.Context, tx *sqlx.Tx, c loom.Cluster) (*loom.Snapshot, error) {
	nodes, err := store.NodesByCluster(ctx, tx, c.Owner.Tenant, c.ID)
	return &loom.Snapshot{Nodes: living(nodes), Services: c.Services, Config: c.Config, Template: &c.Template, Types: &c.Types}, err
}

// checkVersions returns *stale unless the catalog still has what the change was worked out from.
func (c *change) checkVersions(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) error {
	var differs []string
	if len(c.Versions) > 0 {
		now, err := store.NewestVersions(ctx, tx, tenant, c.Versions)
		if err != nil {
			return err
		}
		differs = compareVersions(c.Versions, now)
	}
	if len(c.Pinned) > 0 {
		gone, err := store.MissingVersions(ctx, tx, tenant, c.Pinned)
		if err != nil {
			return err
		}
		for _, v := range gone {
			differs = append(differs, fmt.Sprintf("Version %d of the %s “%s” was deleted or withdrawn.", v.Version, v.Kind.Word(), v.Name))
		}
	}
	if len(differs) > 0 {
		return &stale{differs}
	}
	return nil
}

// revalidate returns errClusterChanged, *stale or Exhausted unless the catalog, the numbers of
// nodes and the quota are still what the draft needs. The caller holds the cluster,
// and what lockQuota locks.
func (c *change) revalidate(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID) error {
	if err := c.checkVersions(ctx, tx, tenant); err != nil {
		return err
	}
	if made := c.added(); len(made) > 0 && c.Followed == nil {
		next, err := store.NextNodeNumber(ctx, tx, tenant, cluster)
		if err != nil {
			return err
		}
		if next != made[0].Number {
			return errClusterChanged
		}
	}
	more := c.more()
	if more == 0 {
		return nil
	}
	// A statement of its own: it sees what was committed while the lock was awaited.
	quota, err := store.QuotaUse(ctx, tx, tenant)
	if err != nil {
		return err
	}
	return quota.Check(0, more)
}

// begin starts the operation, under the lock of the cluster. The error is errClusterChanged
// unless the cluster is as it was seen, *stale unless the catalog is.
func (u *Clusters) begin(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, seen loom.Cluster, c *change, given map[string]any, verb string) (loom.OperationRef, error) {
	var none loom.OperationRef
	cluster, err := store.LockCluster(ctx, tx, actor.Tenant, seen.ID)
	if err := allowed(actor, verbOf(c.Kind), seen.ID, cluster.Object(), err); err != nil {
		return none, err
	}
	// He may have been an administrator when he made a preview of it.
	if len(c.Input.Change.Skip) > 0 {
		if err := actor.May(loom.Override, actor.InTenant()); err != nil {
			return none, err
		}
	}
	if err := u.checkAllowed(ctx, tx, cluster, c.Kind); err != nil {
		return none, err
	}
	if cluster.Revision != seen.Revision {
		return none, errClusterChanged
	}
	if err := c.revalidate(ctx, tx, actor.Tenant, cluster.ID); err != nil {
		return none, err
	}
	if c.Building != nil {
		if err := c.Building.checkUnchanged(ctx, tx, cluster.Provider); err != nil {
			return none, err
		}
	}
	if err := u.takeProviderFields(ctx, tx, actor, &cluster, given); err != nil {
		return none, err
	}
	if err := checkPermitted(ctx, tx, actor.Tenant, cluster.Provider, c.plan); err != nil {
		return none, err
	}
	if c.SetsConfig {
		if err := store.SetClusterConfig(ctx, tx, actor.Tenant, cluster.ID, c.After.Config); err != nil {
			return none, err
		}
	}
	was, err := snapshot(ctx, tx, cluster)
	if err != nil {
		return none, err
	}
	// Before the plan is stored: a hook that is asked hears what the nodes are to be.
	if err := store.SetLayout(ctx, tx, actor.Tenant, cluster.ID, c.newLayout(was)); err != nil {
		return none, err
	}
	if c.After.Template != nil {
		if err := store.SetClusterTemplate(ctx, tx, actor.Tenant, cluster.ID, *c.After.Template, nil); err != nil {
			return none, err
		}
	}
	if cluster.DeleteWanted != "" {
		if err := store.SetDeleteWanted(ctx, tx, actor.Tenant, cluster.ID, ""); err != nil {
			return none, err
		}
	}
	if err := store.SetClusterStatus(ctx, tx, actor.Tenant, cluster.ID, loom.ClusterPending); err != nil {
		return none, err
	}
	request, err := encodeRequest(c.Input)
	if err != nil {
		return none, err
	}
	stored, err := c.completeOperation(ctx, tx, store.NewOperation{
		Tenant: actor.Tenant, Cluster: cluster.ID, Action: c.Action, RequestedBy: actor.User, OnFailure: c.OnFailure, Before: was, Request: request,
	})
	if err != nil {
		return none, err
	}
	op, err := store.InsertPlan(ctx, tx, stored, c.plan)
	if err != nil {
		return none, err
	}
	before, after := c.auditEntry(cluster, op.Ref)
	if c.SetsConfig {
		if err := store.InsertConfigRevision(ctx, tx, actor.Tenant, op.Ref, actor.User); err != nil {
			return none, err
		}
		before["config"], after["config"], after["changed"] = c.secrets().Mask(c.Before.Config), c.secrets().Mask(c.After.Config), paths(c.Before.Config, c.After.Config)
	}
	err = store.InsertAudit(ctx, tx, loom.AuditEntry{
		Actor: actor, Verb: verb, Kind: "cluster", Object: cluster.ID.String(), Result: "ok", Before: before, After: after,
	})
	if err != nil {
		return none, err
	}
	return op.Ref, store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster.ID)...)
}

// auditEntry is what the audit keeps of an operation that begins, but for the config.
func (c *change) auditEntry(cluster loom.Cluster, ref loom.OperationRef) (before, after map[string]any) {
	before = map[string]any{"name": cluster.Name, "status": cluster.Status}
	after = map[string]any{"operationId": ref.String(), "action": c.Action}
	if c.Input.Service != "" {
		after["service"] = c.Input.Service
	}
	if f := c.Followed; f != nil {
		verb := string(c.Kind)
		if f.Amends {
			verb = string(loom.ChangeRetry)
		}
		after[verb] = f.Of
		if len(f.skipped) > 0 {
			after["skip"], after["reason"] = c.Input.Change.Skip, c.Input.Change.Reason
		}
	}
	switch {
	case c.of.layout:
		before["layout"], after["layout"] = layoutOf(c.Before.Nodes), layoutOf(c.After.Nodes)
		before["services"], after["services"] = versionsOf(c.Before.Services), versionsOf(c.After.Services)
		for word, nodes := range map[string][]loom.Node{"made": c.added(), "left": c.removed(), "replaced": c.replaced()} {
			if len(nodes) > 0 {
				after[word] = numbers(nodes)
			}
		}
	case c.Kind == loom.ChangeRepair:
		after["nodes"] = numbers(c.filter(func(_, n *loom.Node) bool { return n != nil && c.asks(n.ID, "") }))
		if len(c.Input.Change.Services) > 0 {
			after["services"] = c.Input.Change.Services
		}
	case c.Kind == loom.ChangeAddServices:
		before["services"], after["services"] = sortedNames(cluster.Services), sortedNames(c.After.Services)
		after["nodes"] = len(c.nodesGainingServices())
	}
	return before, after
}
