package wire

import (
	"loom/app/clusters"
	"loom/app/loom"
)

// MaxChanges is how many changes a preview itself lists; all of them are a list
// of their own.
const MaxChanges = 1000

// Preview is a stored plan that was not applied yet.
type Preview struct {
	ID       loom.PreviewID     `json:"id"`
	Kind     loom.ChangeKind    `json:"kind"`
	Hash     string             `json:"hash"`
	Cluster  string             `json:"clusterId,omitempty"`
	Revision int                `json:"clusterRevision,omitempty"`
	Expires  int64              `json:"expires" description:"Milliseconds since 1970."`
	Layout   []loom.LayoutGroup `json:"layout"`
	Changes  []Change           `json:"changes"`
	Plan     PreviewPlan        `json:"plan"`
	Quota    PreviewQuota       `json:"quota"`
	Warnings []string           `json:"warnings"`
	// OnFailure is what a failure of the operation does; a sync has none.
	OnFailure string `json:"onFailure,omitempty" description:"What a failure of the operation does; missing for a sync, which has none." enum:"keep,undo"`
	// MissingFields are the provider fields that applying must bring, by required set.
	MissingFields any `json:"missingFields,omitempty" schema:"{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#/components/schemas/MissingField\"}}}"`
	// Operation is what became of a preview that was applied.
	Operation string `json:"operationId,omitempty" description:"The resulting operation, once applied."`
}

// PreviewPlan counts the tasks of a preview.
type PreviewPlan struct {
	Tasks    int                     `json:"tasks"`
	Stages   int                     `json:"stages"`
	ByAction map[loom.TaskAction]int `json:"byAction"`
	// Expected is in milliseconds, nil where nothing is known of the past.
	Expected *int64 `json:"expectedMs,omitempty" description:"Milliseconds, from how long such tasks took before."`
}

// PreviewQuota is what the tenant uses now and once the preview is applied.
type PreviewQuota struct {
	Clusters QuotaChange `json:"clusters"`
	Nodes    QuotaChange `json:"nodes"`
}

// QuotaChange is one quota before and after.
type QuotaChange struct {
	Used  int `json:"used"`
	After int `json:"after"`
	Max   int `json:"max"`
}

// Change is what happens to one thing; what is kept is not listed.
type Change struct {
	Change string `json:"change" enum:"create,change,restart,replace,remove"`
	Object string `json:"object" enum:"node,service,config,lease,template"`
	Name   string `json:"name" description:"A host name, a service, or the JSON pointer of a value."`
	Node   int    `json:"node,omitempty"`
	// Old and New are states, or values of a config or template, secrets masked.
	Old     any    `json:"old,omitempty" description:"The previous value, secrets masked."`
	New     any    `json:"new,omitempty" description:"What will be there, secrets masked."`
	Because string `json:"because,omitempty"`
}

// NewPreview gives the wire form; missing are the missing provider fields in
// theirs, nil for none.
func NewPreview(v clusters.PreviewView, missing any) Preview {
	p := Preview{
		ID: v.ID, Kind: v.Kind, Hash: v.Hash, Cluster: v.Cluster.String(), Revision: v.Revision, Expires: Millis(v.Expires),
		Layout: list(v.Layout), Changes: NewChanges(v.Changes[:min(len(v.Changes), MaxChanges)]), Warnings: list(v.Warnings), OnFailure: v.OnFailure, MissingFields: missing,
		Plan: PreviewPlan{Tasks: len(v.Plan.Tasks), Stages: v.Plan.Levels(), ByAction: v.ByAction},
		Quota: PreviewQuota{
			Clusters: QuotaChange{v.Before.Clusters, v.After.Clusters, v.Before.MaxClusters},
			Nodes:    QuotaChange{v.Before.Nodes, v.After.Nodes, v.Before.MaxNodes},
		},
	}
	if v.Known {
		millis := v.Expected.Milliseconds()
		p.Plan.Expected = &millis
	}
	if v.Applied.Number > 0 {
		p.Operation = v.Applied.String()
	}
	return p
}

// NewChanges gives the wire form of changes.
func NewChanges(changes []clusters.ChangeLine) []Change {
	out := make([]Change, len(changes))
	for i, c := range changes {
		out[i] = Change{c.Change, c.Object, c.Name, c.Node, c.Old, c.New, c.Because}
	}
	return out
}
