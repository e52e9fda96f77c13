package wire

import (
	"encoding/json"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/lenient"
	"loom/app/loom"
)

// FleetRequest is what ReadFleet reads.
type FleetRequest struct {
	Kind    string   `json:"kind" required:"true" enum:"update,add_services,configure,restart,rollback"`
	Request struct{} `json:"request" description:"The body of the call that would make the change on one cluster; of a rollback {\"rollout\": 7}."`
	Entries []struct {
		Kind    string   `json:"kind" required:"true" enum:"clustertemplates,partialtemplates,services,hardwaretypes,imagetypes"`
		Name    string   `json:"name"`
		Version int      `json:"version" description:"The newest released version when left out."`
		Entry   struct{} `json:"entry" description:"An entry that is not saved, in place of name and version."`
	} `json:"entries" description:"What an update brings; all that the clusters are made of when left out."`
	Resources bool   `json:"resources" description:"Also bring the staged files of plugins, as if they were released."`
	Q         string `json:"q" description:"A search in the words of the list of clusters; all clusters when left out."`
}

// ReadFleet reads a request for a fleet preview. Invalid.
func ReadFleet(body []byte) (clusters.FleetInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return clusters.FleetInput{}, err
	}
	in := readFleet(o)
	return in, o.Err()
}

func readFleet(o *lenient.Object) clusters.FleetInput {
	in := clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeKind(o.Text("kind"))}, Files: o.Bool("resources"), Q: o.Text("q")}
	if in.Change.Kind == loom.ChangeRollback {
		in.Rollout = o.Object("request").Int("rollout")
	} else {
		readChange(o.Object("request"), &in.Change)
	}
	o.EachOf("entries", func(_ int, e *lenient.Object) {
		kind := loom.EntityKind(e.Text("kind"))
		if !e.Has("entry") {
			in.Change.Change.Entries = append(in.Change.Change.Entries, clusters.EntryVersion{Kind: kind, Name: e.Text("name"), Version: e.Int("version")})
			return
		}
		if draft, ok := readDraft(kind, e); ok {
			in.Drafts = append(in.Drafts, draft)
		}
	})
	return in
}

// readDraft reads an entry that is not saved.
func readDraft(kind loom.EntityKind, e *lenient.Object) (clusters.Draft, bool) {
	if !kind.Valid() {
		e.Fail("kind", "There is no catalog kind “%.40s”.", kind)
		return clusters.Draft{}, false
	}
	body, err := json.Marshal(e.FreeObject("entry"))
	if err != nil {
		e.Fail("entry", "%s", err)
		return clusters.Draft{}, false
	}
	entry, err := catalog.Decode(kind, body)
	if err != nil {
		failed := loom.AsError(err)
		for _, f := range failed.Fields {
			e.Fail("entry."+f.Field, "%s", f.Message)
		}
		if len(failed.Fields) == 0 {
			e.Fail("entry", "%s", failed.Message)
		}
		return clusters.Draft{}, false
	}
	return clusters.Draft{Kind: kind, Entry: entry}, true
}

// FleetPreview says what a change would do to clusters.
type FleetPreview struct {
	Kind    loom.ChangeKind `json:"kind"`
	Q       string          `json:"q"`
	Entries []EntryVersion  `json:"entries"`
	// Resources are the files that a release would put in use.
	Resources []FleetFile             `json:"resources" description:"Staged files that it brings."`
	Clusters  int                     `json:"clusters"`
	Counts    map[clusters.Effect]int `json:"counts" description:"Clusters by effect: unaffected, in_place, restart, replace, impossible."`
	Groups    []FleetGroup            `json:"groups" description:"Clusters with the same effect for the same reason, the strongest effect first."`
	// Before and After are the cost of an hour.
	Before *float64 `json:"priceBefore,omitempty" description:"Cost of an hour now; missing where a hardware type names none."`
	After  *float64 `json:"priceAfter,omitempty" description:"Cost of an hour once the change is made."`
}

// EntryVersion names a version of a catalog entry.
type EntryVersion struct {
	Kind    loom.EntityKind `json:"kind"`
	Name    string          `json:"name"`
	Version int             `json:"version" description:"Of an entry that is not saved: the number that saving would give it."`
}

// FleetFile names a staged file of a plugin.
type FleetFile struct {
	Plugin  string `json:"plugin"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version int    `json:"version"`
}

// FleetGroup are clusters with the same effect for the same reason.
type FleetGroup struct {
	Effect   clusters.Effect         `json:"effect" enum:"unaffected,in_place,restart,replace,impossible"`
	Code     string                  `json:"code,omitempty" description:"Why it is impossible: unsolvable, busy, state, protected, credentials, quota, parameters, gone."`
	Reason   string                  `json:"reason,omitempty"`
	Services []string                `json:"services" description:"Services that are stopped for it."`
	Tasks    map[loom.TaskAction]int `json:"tasks" description:"Tasks of all its clusters by action."`
	Replaced int                     `json:"nodesReplaced" description:"Nodes that get another machine."`
	Clusters []FleetMember           `json:"clusters"`
}

// FleetMember is a cluster of a group.
type FleetMember struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// NewFleetPreview gives the wire form.
func NewFleetPreview(p clusters.FleetPreview) FleetPreview {
	out := FleetPreview{Kind: p.Kind, Q: p.Q, Entries: []EntryVersion{}, Resources: []FleetFile{}, Clusters: p.Clusters, Counts: p.Counts, Before: p.Before, After: p.After, Groups: []FleetGroup{}}
	for _, e := range p.Entries {
		out.Entries = append(out.Entries, EntryVersion{e.Kind, e.Name, e.Version})
	}
	for _, f := range p.Files {
		out.Resources = append(out.Resources, FleetFile{f.Plugin, f.Type, f.Name, f.Version})
	}
	for _, g := range p.Groups {
		group := FleetGroup{Effect: g.Effect, Code: g.Code, Reason: g.Reason, Services: append([]string{}, g.Services...), Tasks: g.Tasks, Replaced: g.Replaced}
		for _, m := range g.Members {
			group.Clusters = append(group.Clusters, FleetMember{m.ID.String(), m.Name})
		}
		out.Groups = append(out.Groups, group)
	}
	return out
}
