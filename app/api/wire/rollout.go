package wire

import (
	"loom/app/clusters"
	"loom/app/lenient"
	"loom/app/loom"
)

// RolloutRequest is what ReadRollout reads.
type RolloutRequest struct {
	FleetRequest
	Waves    []loom.Wave     `json:"waves" description:"One cluster, a tenth of all and the rest when left out."`
	Settings RolloutSettings `json:"settings"`
}

// RolloutSettings say how a rollout goes.
type RolloutSettings struct {
	Concurrency int                 `json:"concurrency" description:"Clusters that are changed at the same time at most, 5 when left out."`
	MaxFailed   int                 `json:"maxFailed" description:"Clusters that may fail before the rollout stops, 0 when left out."`
	Pause       int                 `json:"pause" description:"Seconds between two waves, 600 when left out."`
	Confirm     bool                `json:"confirm" description:"Each wave but the first waits until somebody continues."`
	Windows     []loom.Window       `json:"windows" description:"When operations may begin, always when left out."`
	Timezone    string              `json:"timezone" description:"IANA name, for the times of windows; UTC when left out."`
	Changed     loom.RolloutChanged `json:"changed" enum:"skip,replan" description:"What becomes of clusters whose plan is another by their turn; skip when left out."`
}

// ReadRollout reads a request for a rollout. Invalid.
func ReadRollout(body []byte) (clusters.RolloutInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return clusters.RolloutInput{}, err
	}
	in := clusters.RolloutInput{Fleet: readFleet(o), Settings: loom.DefaultRolloutSettings()}
	o.EachOf("waves", func(_ int, e *lenient.Object) {
		w := loom.Wave{Count: e.IntPtr("count"), Percent: e.IntPtr("percent"), Q: e.TextPtr("q"), Rest: e.Bool("rest")}
		for _, text := range e.Texts("clusters") {
			id, ok := loom.ParseClusterID(text)
			if !ok {
				e.Fail("clusters", "There is no cluster “%.40s”.", text)
				return
			}
			w.Clusters = append(w.Clusters, id)
		}
		in.Waves = append(in.Waves, w)
	})
	s := o.Object("settings")
	for name, into := range map[string]*int{"concurrency": &in.Settings.Concurrency, "maxFailed": &in.Settings.MaxFailed, "pause": &in.Settings.Pause} {
		if s.Has(name) {
			*into = s.Int(name)
		}
	}
	in.Settings.Confirm, in.Settings.Timezone = s.Bool("confirm"), s.Text("timezone")
	in.Settings.Changed = loom.RolloutChanged(s.TextOr("changed", string(loom.RolloutSkip)))
	s.EachOf("windows", func(_ int, e *lenient.Object) {
		in.Settings.Windows = append(in.Settings.Windows, loom.Window{Days: e.Texts("days"), From: e.Text("from"), To: e.Text("to")})
	})
	return in, o.Err()
}

// RolloutStart is what ReadRolloutStart reads.
type RolloutStart struct {
	Hash    string `json:"hash" required:"true" description:"That of the rollout as it was read."`
	Replace bool   `json:"replaceNodes" description:"Must be true where the rollout replaces machines."`
}

// ReadRolloutStart reads what is sent to start a rollout. Invalid.
func ReadRolloutStart(body []byte) (clusters.StartInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return clusters.StartInput{}, err
	}
	return clusters.StartInput{Hash: o.Text("hash"), Replace: o.Bool("replaceNodes")}, o.Err()
}

// Rollout is a change of many clusters, carried out in waves.
type Rollout struct {
	Number     int                `json:"number"`
	Kind       loom.ChangeKind    `json:"kind"`
	Entries    []EntryVersion     `json:"entries" description:"What an update brings."`
	Rollback   int                `json:"rollback,omitempty" description:"Of a rollback: the number of the rollout that is rolled back."`
	Q          string             `json:"q"`
	Settings   RolloutSettings    `json:"settings"`
	Hash       string             `json:"hash" description:"Over what would be done, and how."`
	Status     loom.RolloutStatus `json:"status" enum:"ready,running,stopped,complete,aborted"`
	Why        string             `json:"why,omitempty" description:"Why it stopped, or what it waits for."`
	Until      int64              `json:"until,omitempty" description:"When that ends by itself, in milliseconds since 1970."`
	Wave       int                `json:"wave" description:"The present one, 0 before the start."`
	Waves      []RolloutWave      `json:"waves"`
	LeftOut    int                `json:"leftOut" description:"Clusters for which the change was impossible."`
	Unaffected int                `json:"unaffected" description:"Clusters that the change leaves as they are; they are in no wave."`
	Replaced   int                `json:"nodesReplaced" description:"Nodes that get another machine."`
	CreatedBy  loom.UserID        `json:"createdBy"`
	StartedBy  loom.UserID        `json:"startedBy,omitempty" description:"Operations act as this user."`
	Created    int64              `json:"createTime"`
	Started    int64              `json:"startTime,omitempty"`
	Ended      int64              `json:"endTime,omitempty"`
}

// RolloutWave counts the clusters of a wave.
type RolloutWave struct {
	Wave     int                               `json:"wave"`
	Clusters int                               `json:"clusters"`
	Statuses map[loom.RolloutClusterStatus]int `json:"statuses" description:"Clusters by status: waiting, running, done, failed, undone, skipped."`
	Effects  map[string]int                    `json:"effects" description:"Clusters by effect: in_place, restart, replace."`
}

// NewRollout gives the wire form.
func NewRollout(v clusters.RolloutView) Rollout {
	out := Rollout{
		Number: v.Number, Kind: v.Kind, Entries: []EntryVersion{}, Rollback: v.Asked.Rollout, Q: v.Asked.Q, Settings: RolloutSettings(v.Settings), Hash: v.Hash, Status: v.Status,
		Why: v.Why, Until: Millis(v.Until), Wave: v.Wave, Waves: make([]RolloutWave, v.Waves), Unaffected: v.Unaffected, Replaced: v.Replaced(),
		CreatedBy: v.CreatedBy, StartedBy: v.StartedBy, Created: Millis(v.Created), Started: Millis(v.Started), Ended: Millis(v.End),
	}
	for _, e := range v.Asked.Change.Change.Entries {
		out.Entries = append(out.Entries, EntryVersion{e.Kind, e.Name, e.Version})
	}
	for i := range out.Waves {
		out.Waves[i] = RolloutWave{Wave: i + 1, Statuses: map[loom.RolloutClusterStatus]int{}, Effects: map[string]int{}}
	}
	for _, c := range v.Counts {
		if c.Wave == 0 {
			out.LeftOut += c.Clusters
			continue
		}
		w := &out.Waves[c.Wave-1]
		w.Clusters += c.Clusters
		w.Statuses[c.Status] += c.Clusters
		w.Effects[c.Effect] += c.Clusters
	}
	return out
}

// RolloutCluster is a cluster of a rollout.
type RolloutCluster struct {
	ID        string                    `json:"id"`
	Name      string                    `json:"name"`
	Wave      int                       `json:"wave" description:"In which its turn comes, 0 for one that is left out. One that gets another turn after a resume moves to the present wave."`
	Effect    string                    `json:"effect" enum:"in_place,restart,replace,impossible"`
	Tasks     map[loom.TaskAction]int   `json:"tasks" description:"Tasks by action, as the rollout showed them."`
	Replaced  int                       `json:"nodesReplaced"`
	Status    loom.RolloutClusterStatus `json:"status" enum:"waiting,running,done,failed,undone,skipped"`
	Note      string                    `json:"note,omitempty" description:"Why it was skipped or failed."`
	Operation string                    `json:"operationId,omitempty"`
	Ended     int64                     `json:"endTime,omitempty"`
}

// NewRolloutCluster gives the wire form.
func NewRolloutCluster(c loom.RolloutCluster) RolloutCluster {
	out := RolloutCluster{ID: c.Cluster.String(), Name: c.Name, Wave: c.Wave, Effect: c.Effect, Tasks: c.Tasks, Replaced: c.Replaced, Status: c.Status, Note: c.Note, Ended: Millis(c.End)}
	if out.Tasks == nil {
		out.Tasks = map[loom.TaskAction]int{}
	}
	if c.Operation > 0 {
		out.Operation = loom.OperationRef{Cluster: c.Cluster, Number: c.Operation}.String()
	}
	return out
}
