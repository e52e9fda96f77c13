package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/lenient"
	"loom/app/loom"
)

// FleetRequest is what ReadFleet reads.
type FleetRequest struct {
	Kind    string   `json:"kind" required:"true" enum:"update,add_services,configure,restart"`
	Request struct{} `json:"request" description:"The body of the call that would make the change on one cluster."`
	Entries []struct {
		Kind    string   `json:"kind" required:"true" enum:"clustertemplates,partialtemplates,services,hardwaretypes,imagetypes"`
		Name    string   `json:"name"`
		Version int      `json:"version" description:"The newest released version when left out."`
		Entry   struct{} `json:"entry" description:"An entry that is not saved, in place of name and version."`
	} `json:"entries" description:"What an update brings; all that the clusters are made of when left out."`
	Q string `json:"q" description:"A search in the words of the list of clusters; all clusters when left out."`
}

// ReadFleet reads a request for a fleet preview. Invalid.
func ReadFleet(body []byte) (clusters.FleetInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return clusters.FleetInput{}, err
	}
	in := clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeKind(o.Text("kind"))}, Q: o.Text("q")}
	readChange(o.Object("request"), &in.Change)
	var drafts []clusters.Draft
	o.EachOf("entries", func(_ int, e *lenient.Object) {
		kind := loom.EntityKind(e.Text("kind"))
		if !e.Has("entry") {
			in.Change.Change.Entries = append(in.Change.Change.Entries, clusters.EntryVersion{Kind: kind, Name: e.Text("name"), Version: e.Int("version")})
			return
		}
		if draft, ok := readDraft(kind, e); ok {
			drafts = append(drafts, draft)
		}
	})
	in.Drafts = drafts
	return in, o.Err()
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
	Kind     loom.ChangeKind         `json:"kind"`
	Q        string                  `json:"q"`
	Entries  []EntryVersion          `json:"entries"`
	Clusters int                     `json:"clusters"`
	Counts   map[clusters.Effect]int `json:"counts" description:"Clusters by effect: unaffected, in_place, restart, replace, impossible."`
	Groups   []FleetGroup            `json:"groups" description:"Clusters with the same effect for the same reason, the strongest effect first."`
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
	out := FleetPreview{Kind: p.Kind, Q: p.Q, Entries: []EntryVersion{}, Clusters: p.Clusters, Counts: p.Counts, Before: p.Before, After: p.After, Groups: []FleetGroup{}}
	for _, e := range p.Entries {
		out.Entries = append(out.Entries, EntryVersion{e.Kind, e.Name, e.Version})
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

// Bounds of a fleet preview as Markdown.
const (
	markdownNames = 50
	markdownSize  = 60_000
)

// FleetMarkdown is a fleet preview as Markdown, for a comment on a change of the catalog: counts,
// price, and a row for each group with at most 50 names; at most 60,000 characters.
func FleetMarkdown(p clusters.FleetPreview) string {
	if p.Clusters == 0 {
		return "### Effect on clusters\n\nNo clusters are affected.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### Effect on %s\n\n", plural(p.Clusters, "cluster"))
	var counts []string
	for _, e := range slices.Backward(clusters.Effects) {
		if n := p.Counts[e]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, effectWord(e)))
		}
	}
	if len(counts) > 0 {
		b.WriteString(strings.Join(counts, ", "))
		if p.Before != nil {
			fmt.Fprintf(&b, ", %+.2f an hour", *p.After-*p.Before)
		}
		b.WriteString(".\n")
	}
	for _, e := range p.Entries {
		fmt.Fprintf(&b, "\n- %s %s v%d", e.Kind.Word(), markdownText(e.Name), e.Version)
	}
	if len(p.Groups) > 0 {
		b.WriteString("\n\n| Effect | Why | Clusters |\n|---|---|---|\n")
	}
	const rest = "\n%d more groups are left out.\n"
	for i, g := range p.Groups {
		row := markdownRow(g)
		if utf8.RuneCountInString(b.String())+utf8.RuneCountInString(row)+len(rest) > markdownSize {
			fmt.Fprintf(&b, rest, len(p.Groups)-i)
			break
		}
		b.WriteString(row)
	}
	return b.String()
}

func markdownRow(g clusters.FleetGroup) string {
	why := markdownText(g.Reason)
	switch {
	case g.Replaced > 0:
		why = plural(g.Replaced, "node") + " replaced"
	case len(g.Services) > 0:
		why = "restarts " + markdownText(loom.And(g.Services))
	}
	names := make([]string, 0, markdownNames+1)
	for _, m := range g.Members[:min(len(g.Members), markdownNames)] {
		names = append(names, markdownText(m.Name))
	}
	if more := len(g.Members) - markdownNames; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("| %s | %s | %d: %s |\n", effectWord(g.Effect), why, len(g.Members), strings.Join(names, ", "))
}

func effectWord(e clusters.Effect) string { return strings.ReplaceAll(string(e), "_", " ") }

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// markdownText escapes a text for a cell of a table.
func markdownText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\r':
			b.WriteByte(' ')
			continue
		case strings.ContainsRune("\\`*_{}[]<>()#+-.!|&~@", r) && r != '.' && r != '-' && r != '(' && r != ')':
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
