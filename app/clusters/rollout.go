package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// RolloutInput asks for a rollout.
type RolloutInput struct {
	// Fleet is the change, and which clusters it is about. It has no drafts.
	Fleet FleetInput
	// Waves are loom.DefaultWaves where there is none.
	Waves    []loom.Wave
	Settings loom.RolloutSettings
}

// RolloutRequest is what is stored of a request for a rollout.
type RolloutRequest struct {
	Change PreviewInput
	// Rollout is the one that is rolled back, 0 for other kinds.
	Rollout int
	Q       string
	Waves   []loom.Wave
}

// RolloutFilter limits the clusters of a rollout.
type RolloutFilter = store.RolloutClusterFilter

// RolloutView is a rollout as it is shown.
type RolloutView struct {
	loom.Rollout
	Asked RolloutRequest
	// Counts are how many clusters there are, by wave, effect and status.
	Counts []store.RolloutCount
}

// Clusters counts those with one of the statuses, or all that are in a wave.
func (v *RolloutView) Clusters(statuses ...loom.RolloutClusterStatus) (n int) {
	for _, c := range v.Counts {
		if len(statuses) == 0 && c.Wave > 0 || slices.Contains(statuses, c.Status) {
			n += c.Clusters
		}
	}
	return n
}

// Replaced counts the machines that the rollout replaces.
func (v *RolloutView) Replaced() (n int) {
	for _, c := range v.Counts {
		if c.Wave > 0 {
			n += c.Replaced
		}
	}
	return n
}

// Effects counts the clusters by effect, the strongest first.
func (v *RolloutView) Effects() string {
	counts := map[Effect]int{EffectUnaffected: v.Unaffected}
	for _, c := range v.Counts {
		counts[Effect(c.Effect)] += c.Clusters
	}
	return effectsSummary(counts)
}

// Change says in a few words what the rollout does: "Update nginx to version 5".
func (v *RolloutView) Change() string {
	entries := v.Asked.Change.Change.Entries
	switch {
	case v.Kind == loom.ChangeRollback:
		return fmt.Sprintf("Roll back rollout %d", v.Asked.Rollout)
	case v.Kind == loom.ChangeUpdate && len(entries) == 1:
		return fmt.Sprintf("Update %s to version %d", entries[0].Name, entries[0].Version)
	case v.Kind == loom.ChangeUpdate && len(entries) > 1:
		return fmt.Sprintf("Update %d entries", len(entries))
	case v.Kind == loom.ChangeUpdate:
		return "Update to the newest versions"
	case v.Kind == loom.ChangeAddServices:
		return "Add " + loom.And(v.Asked.Change.Services)
	case v.Kind == loom.ChangeConfigure:
		return "Change the config"
	case v.Asked.Change.Service != "":
		return "Restart " + v.Asked.Change.Service
	}
	return "Restart services"
}

func noRollout(number int, err error) error {
	if isNotFound(err) {
		return loom.NewError(loom.NotFound, "There is no rollout %d.", number)
	}
	return err
}

// MakeRollout works out a change of many clusters in waves. Nothing of it happens before the
// start. Errors: those of FleetPreview; Invalid; Conflict where no cluster would change, where
// another rollout has some of the clusters, and where too many rollouts are open.
func (u *Clusters) MakeRollout(ctx context.Context, actor loom.Actor, in RolloutInput) (RolloutView, error) {
	if err := actor.May(loom.Operate, actor.InTenant()); err != nil {
		return RolloutView{}, err
	}
	if len(in.Fleet.Drafts) > 0 {
		return RolloutView{}, invalid("entries", "A rollout brings saved entries. Save them first, and name their versions.")
	}
	if in.Fleet.Files {
		return RolloutView{}, invalid("resources", "A rollout brings files that are in use. Release the staged files first, and name the services.")
	}
	if len(in.Waves) == 0 {
		in.Waves = loom.DefaultWaves()
	}
	found, errs := map[int]map[loom.ClusterID]bool{}, append(in.Settings.Check(), loom.CheckWaves(in.Waves)...)
	for i, w := range in.Waves {
		if w.Q == nil {
			continue
		}
		f := store.ClusterFilter{Viewer: store.SeenBy(actor)}
		wrong := readSearch(*w.Q, &f)
		for n := range wrong {
			wrong[n].Field = fmt.Sprintf("waves[%d].q", i)
		}
		if errs = append(errs, wrong...); len(wrong) > 0 {
			continue
		}
		ids, err := store.ClusterIDs(ctx, u.q, actor.Tenant, f)
		if err != nil {
			return RolloutView{}, err
		}
		found[i] = map[loom.ClusterID]bool{}
		for _, id := range ids {
			found[i][id] = true
		}
	}
	if err := loom.InvalidFields(errs); err != nil {
		return RolloutView{}, err
	}
	var affected, left []loom.RolloutCluster
	p, err := u.previewClusters(ctx, actor, in.Fleet, func(c loom.RolloutCluster) {
		if c.Status == loom.RolloutWaits {
			affected = append(affected, c)
		} else {
			left = append(left, c)
		}
	})
	switch {
	case err != nil:
		return RolloutView{}, err
	case len(affected) == 0 && len(left) > 0:
		return RolloutView{}, loom.NewError(loom.Conflict, "The change is impossible for %s. %s: %s", count(len(left), "cluster"), left[0].Name, left[0].Note)
	case len(affected) == 0:
		return RolloutView{}, loom.NewError(loom.Conflict, "The change affects no cluster. There is nothing to roll out.")
	}
	loom.DivideWaves(in.Waves, affected, found)
	waves := affected[len(affected)-1].Wave
	for i := range left {
		left[i].Place = len(affected) + i + 1
	}
	asked := RolloutRequest{Change: in.Fleet.Change, Rollout: in.Fleet.Rollout, Q: in.Fleet.Q, Waves: in.Waves}
	asked.Change.Change.Entries = p.Entries // in the versions of now
	r := loom.Rollout{Kind: in.Fleet.Change.Kind, Settings: in.Settings, Waves: waves, Unaffected: p.Counts[EffectUnaffected], CreatedBy: actor.User}
	if r.Request, err = json.Marshal(asked); err != nil {
		return RolloutView{}, fmt.Errorf("encode a rollout: %w", err)
	}
	all := append(affected, left...)
	if r.Hash, err = rolloutHash(r, all); err != nil {
		return RolloutView{}, err
	}
	return u.keepRollout(ctx, actor, r, all)
}

// rolloutHash covers what a rollout would do, and how.
func rolloutHash(r loom.Rollout, clusters []loom.RolloutCluster) (string, error) {
	h := sha256.New()
	for _, part := range []any{r.Kind, json.RawMessage(r.Request), r.Settings, clusters} {
		text, err := json.Marshal(part)
		if err != nil {
			return "", fmt.Errorf("encode a rollout: %w", err)
		}
		fmt.Fprintf(h, "%d\n%s\n", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// keepRollout stores a rollout that is ready.
func (u *Clusters) keepRollout(ctx context.Context, actor loom.Actor, r loom.Rollout, clusters []loom.RolloutCluster) (RolloutView, error) {
	number, err := store.InTx(ctx, u.db, func(tx *sqlx.Tx) (int, error) {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return 0, err
		}
		open, err := store.OpenRollouts(ctx, tx, actor.Tenant)
		if err != nil {
			return 0, err
		}
		if open >= loom.MaxOpenRollouts {
			return 0, loom.NewError(loom.Conflict, "%d rollouts are open. Abort one first.", open)
		}
		var ids []loom.ClusterID
		for _, c := range clusters {
			if c.Status == loom.RolloutWaits { // others are left out, whatever runs on them
				ids = append(ids, c.Cluster)
			}
		}
		places, err := store.RolloutPlaces(ctx, tx, actor.Tenant, ids...)
		if err != nil {
			return 0, err
		}
		if len(places) > 0 {
			return 0, inOtherRollouts(places)
		}
		made, err := store.InsertRollout(ctx, tx, actor.Tenant, r, clusters)
		if err != nil {
			return 0, err
		}
		return made.Number, u.noteRollout(ctx, tx, actor, made, "create", "")
	})
	if err != nil {
		return RolloutView{}, err
	}
	return u.Rollout(ctx, actor, number)
}

// namedClusters is how many clusters an error names of each rollout.
const namedClusters = 10

// inOtherRollouts says which rollouts have the clusters of a new one, and what to do about it.
func inOtherRollouts(places []store.RolloutPlace) error {
	names := map[int][]string{}
	for _, p := range places {
		names[p.Rollout] = append(names[p.Rollout], p.ClusterName)
	}
	var have, numbers []string
	for _, number := range slices.Sorted(maps.Keys(names)) {
		some := names[number]
		if more := len(some) - namedClusters; more > 0 {
			some = append(some[:namedClusters:namedClusters], count(more, "other"))
		}
		have = append(have, fmt.Sprintf("Rollout %d has %s.", number, loom.And(some)))
		numbers = append(numbers, strconv.Itoa(number))
	}
	rollouts := "rollout "
	if len(numbers) > 1 {
		rollouts = "rollouts "
	}
	return loom.NewError(loom.Conflict, "%s A cluster is in one rollout at a time: abort %s%s, wait for the end, or leave the named clusters out with a search such as -id:%s.",
		strings.Join(have, " "), rollouts, loom.And(numbers), places[0].Cluster)
}

// noteRollout writes the audit log about what somebody did to a rollout, and tells open pages.
func (u *Clusters) noteRollout(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, r loom.Rollout, verb string, before loom.RolloutStatus) error {
	entry := loom.AuditEntry{Actor: actor, Verb: verb, Kind: "rollout", Object: fmt.Sprint(r.Number), Result: "ok", After: map[string]any{"status": r.Status, "kind": r.Kind}}
	if before != "" {
		entry.Before = map[string]any{"status": before}
	}
	if err := store.InsertAudit(ctx, tx, entry); err != nil {
		return err
	}
	return store.InsertEvents(ctx, tx, rolloutEvents(r)...)
}

func rolloutEvents(r loom.Rollout) []loom.Event {
	return []loom.Event{{Tenant: r.Tenant, Topic: r.Topic()}, {Tenant: r.Tenant, Topic: "rollouts"}}
}

// Rollout reads a rollout. NotFound.
func (u *Clusters) Rollout(ctx context.Context, actor loom.Actor, number int) (RolloutView, error) {
	if err := actor.May(loom.Operate.Reading(), actor.InTenant()); err != nil {
		return RolloutView{}, err
	}
	r, err := store.RolloutByNumber(ctx, u.q, actor.Tenant, number)
	if err != nil {
		return RolloutView{}, noRollout(number, err)
	}
	views, err := u.viewRollouts(ctx, actor, r)
	if err != nil {
		return RolloutView{}, err
	}
	return views[0], nil
}

// Rollouts reads a page of rollouts, the newest first, with one of the statuses or with any.
// Invalid for a cursor of another list.
func (u *Clusters) Rollouts(ctx context.Context, actor loom.Actor, statuses []string, p loom.Page) (views []RolloutView, next, prev string, err error) {
	if err := actor.May(loom.Operate.Reading(), actor.InTenant()); err != nil {
		return nil, "", "", err
	}
	list, err := store.Rollouts(ctx, u.q, actor.Tenant, statuses, p)
	if err != nil {
		return nil, "", "", err
	}
	views, err = u.viewRollouts(ctx, actor, list.Items...)
	return views, list.Next, list.Prev, err
}

func (u *Clusters) viewRollouts(ctx context.Context, actor loom.Actor, all ...loom.Rollout) ([]RolloutView, error) {
	views, numbers := make([]RolloutView, len(all)), make([]int, len(all))
	place := map[int]*RolloutView{}
	for i, r := range all {
		asked, err := readRolloutRequest(r)
		if err != nil {
			return nil, err
		}
		views[i], numbers[i] = RolloutView{Rollout: r, Asked: asked}, r.Number
		place[r.Number] = &views[i]
	}
	counts, err := store.RolloutCounts(ctx, u.q, actor.Tenant, numbers...)
	for _, c := range counts {
		place[c.Rollout].Counts = append(place[c.Rollout].Counts, c)
	}
	return views, err
}

func readRolloutRequest(r loom.Rollout) (asked RolloutRequest, err error) {
	d := json.NewDecoder(strings.NewReader(string(r.Request)))
	d.UseNumber()
	if err := d.Decode(&asked); err != nil {
		return asked, fmt.Errorf("decode rollout %d: %w", r.Number, err)
	}
	return asked, nil
}

// RolloutClusters reads a page of the clusters of a rollout, in the order of their turns; those
// left out come last. NotFound, and Invalid for a cursor of another list.
func (u *Clusters) RolloutClusters(ctx context.Context, actor loom.Actor, number int, f RolloutFilter, p loom.Page) (store.RolloutClusterList, error) {
	if err := actor.May(loom.Operate.Reading(), actor.InTenant()); err != nil {
		return store.RolloutClusterList{}, err
	}
	if _, err := store.RolloutByNumber(ctx, u.q, actor.Tenant, number); err != nil {
		return store.RolloutClusterList{}, noRollout(number, err)
	}
	return store.RolloutClusters(ctx, u.q, actor.Tenant, number, f, p)
}

// RolloutHeads reads some clusters of each wave of a rollout, those that failed and those that run
// first; none of a rollout that is not there.
func (u *Clusters) RolloutHeads(ctx context.Context, actor loom.Actor, number, most int) ([]loom.RolloutCluster, error) {
	if err := actor.May(loom.Operate.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	return store.RolloutHeads(ctx, u.q, actor.Tenant, number, most)
}

// StartInput names what somebody saw of a rollout that he starts.
type StartInput struct {
	Hash string
	// Replace allows that machines are replaced.
	Replace bool
}

// StartRollout starts a rollout that is ready. Errors: NotFound; Invalid without the hash, and
// where machines are replaced and nobody allows that; Conflict for another hash or status.
func (u *Clusters) StartRollout(ctx context.Context, actor loom.Actor, number int, in StartInput) (RolloutView, error) {
	if in.Hash == "" {
		return RolloutView{}, invalid("hash", "Send the hash of the rollout that you saw.")
	}
	view, err := u.Rollout(ctx, actor, number)
	if err != nil {
		return view, err
	}
	if n := view.Replaced(); n > 0 && !in.Replace {
		return view, invalid("replaceNodes", "The rollout replaces %s, whose disks are lost. Send “replaceNodes”: true.", count(n, "machine"))
	}
	return u.steer(ctx, actor, number, "start", []loom.RolloutStatus{loom.RolloutReady}, func(tx *sqlx.Tx, r *loom.Rollout) error {
		if in.Hash != r.Hash {
			return loom.NewError(loom.Conflict, "The hash does not match the rollout. Load the rollout again.")
		}
		now, err := store.Now(ctx, tx)
		r.Status, r.Wave, r.Started, r.StartedBy = loom.RolloutRunning, 1, now, actor.User
		return err
	})
}

// StopRollout begins nothing more of a rollout; operations that run continue. Errors: NotFound;
// Conflict for one that does not run.
func (u *Clusters) StopRollout(ctx context.Context, actor loom.Actor, number int) (RolloutView, error) {
	return u.steer(ctx, actor, number, "stop", []loom.RolloutStatus{loom.RolloutRunning}, func(_ *sqlx.Tx, r *loom.Rollout) error {
		r.Status, r.Why = loom.RolloutStopped, fmt.Sprintf("Stopped by %s.", actor.User)
		return nil
	})
}

// ResumeRollout continues a stopped rollout, as the actor. Clusters that failed get another turn.
// Errors: NotFound; Conflict for one that did not stop.
func (u *Clusters) ResumeRollout(ctx context.Context, actor loom.Actor, number int) (RolloutView, error) {
	return u.steer(ctx, actor, number, "resume", []loom.RolloutStatus{loom.RolloutStopped}, func(tx *sqlx.Tx, r *loom.Rollout) error {
		r.Status, r.Failures, r.StartedBy = loom.RolloutRunning, 0, actor.User
		return store.RetryRolloutClusters(ctx, tx, actor.Tenant, number)
	})
}

// ContinueRollout lets the next wave of a rollout begin without waiting for the end of the pause,
// for confirmation or for a health that is unknown. Errors: NotFound; Conflict for one that
// does not wait between two waves.
func (u *Clusters) ContinueRollout(ctx context.Context, actor loom.Actor, number int) (RolloutView, error) {
	return u.steer(ctx, actor, number, "continue", []loom.RolloutStatus{loom.RolloutRunning}, func(_ *sqlx.Tx, r *loom.Rollout) error {
		if r.WaveEnded.IsZero() {
			return loom.NewError(loom.Conflict, "Wave %d of rollout %d is not over. The next wave begins after it.", r.Wave, number)
		}
		r.Continued = true
		return nil
	})
}

// AbortRollout ends a rollout: what waits is skipped, and operations that run are aborted. Errors:
// NotFound; Conflict for one that is over.
func (u *Clusters) AbortRollout(ctx context.Context, actor loom.Actor, number int) (RolloutView, error) {
	return u.steer(ctx, actor, number, "abort", []loom.RolloutStatus{loom.RolloutReady, loom.RolloutRunning, loom.RolloutStopped}, func(tx *sqlx.Tx, r *loom.Rollout) error {
		r.Status, r.Why = loom.RolloutAborted, fmt.Sprintf("Aborted by %s.", actor.User)
		return store.SkipRolloutClusters(ctx, tx, actor.Tenant, number, "The rollout was aborted.")
	})
}

// steer changes a rollout that has one of the statuses. A scheduler looks at it at once.
func (u *Clusters) steer(ctx context.Context, actor loom.Actor, number int, verb string, from []loom.RolloutStatus, act func(tx *sqlx.Tx, r *loom.Rollout) error) (RolloutView, error) {
	if err := actor.May(loom.Operate, actor.InTenant()); err != nil {
		return RolloutView{}, err
	}
	err := store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		r, err := store.LockRollout(ctx, tx, actor.Tenant, number)
		if err != nil {
			return noRollout(number, err)
		}
		if !slices.Contains(from, r.Status) {
			return loom.NewError(loom.Conflict, "Rollout %d is %s.", number, r.Status)
		}
		before := r.Status
		r.Why, r.Until = "", time.Time{}
		if err := act(tx, &r); err != nil {
			return err
		}
		if err := store.UpdateRollout(ctx, tx, actor.Tenant, r, 0); err != nil {
			return err
		}
		return u.noteRollout(ctx, tx, actor, r, verb, before)
	})
	if err != nil {
		return RolloutView{}, err
	}
	return u.Rollout(ctx, actor, number)
}
