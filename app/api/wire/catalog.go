package wire

import (
	"loom/app/catalog"
	"loom/app/lenient"
	"loom/app/loom"
)

// Resource is the metadata of a version of a plugin resource.
type Resource struct {
	Name    string              `json:"name"`
	Version int                 `json:"version"`
	Status  loom.ResourceStatus `json:"status"`
}

// NewResource gives the wire form.
func NewResource(r loom.Resource) Resource {
	return Resource{Name: r.Name, Version: r.Version, Status: r.Status()}
}

// ResourceName is a plugin resource with all of its versions.
type ResourceName struct {
	// Kind is automatortypes or providertypes.
	Kind   string `json:"kind" enum:"automatortypes,providertypes"`
	Plugin string `json:"plugin"`
	Type   string `json:"type"`
	Name   string `json:"name"`
	// Live is the version in use, Staged the one in use after the next sync; 0 for none.
	Live   int                 `json:"live"`
	Staged int                 `json:"staged"`
	Status loom.ResourceStatus `json:"status"`
	// Versions is how many there are; the rest is about the newest.
	Versions int         `json:"versions"`
	Version  int         `json:"version"`
	Format   string      `json:"format"`
	Size     int64       `json:"size"`
	SHA256   string      `json:"sha256"`
	Created  int64       `json:"createTime"`
	Author   loom.UserID `json:"author"`
}

// NewResourceName gives the wire form.
func NewResourceName(r loom.ResourceSummary) ResourceName {
	return ResourceName{
		Kind: r.Kind, Plugin: r.Plugin, Type: r.Type, Name: r.Name, Live: r.LiveVersion, Staged: r.SlatedVersion, Status: r.Status(),
		Versions: r.Versions, Version: r.Version, Format: r.Format, Size: r.Size, SHA256: r.SHA256, Created: Millis(r.Created), Author: r.Author,
	}
}

// VersionInfo says who saved a version of a catalog entry, and whether it is in use.
type VersionInfo struct {
	Version int         `json:"version"`
	Author  loom.UserID `json:"author"`
	Time    int64       `json:"time" description:"Milliseconds since 1970."`
	// Released reports whether clusters are made of it.
	Released    bool   `json:"released" description:"New clusters and updates take the newest released version."`
	Deprecation string `json:"deprecation" description:"A message to the owners of clusters on this version; empty for none."`
	Clusters    int    `json:"clusters" description:"Clusters on this version. 0 but for templates and services."`
}

// NewVersions gives the wire form of a list of versions.
func NewVersions(infos []loom.VersionInfo) []VersionInfo {
	out := make([]VersionInfo, len(infos))
	for i, v := range infos {
		out[i] = VersionInfo{v.Version, v.Author, Millis(v.Time), v.Released, v.Deprecation, v.Clusters}
	}
	return out
}

// Finding is something in a catalog that would not work.
type Finding struct {
	Severity loom.FindingSeverity `json:"severity"`
	Code     loom.FindingCode     `json:"code"`
	Kind     loom.EntityKind      `json:"kind"`
	Name     string               `json:"name"`
	Version  int                  `json:"version"`
	Field    string               `json:"field" description:"JSON pointer into the entry."`
	Value    string               `json:"value" description:"What is wrong there; empty where nothing is."`
	Message  string               `json:"message"`
	Remedy   string               `json:"remedy"`
	Missing  loom.EntityKind      `json:"missing,omitempty" description:"The kind of what the value names, where that entry does not exist."`
	Fixes    []loom.FindingFix    `json:"fixes,omitempty" description:"What POST /v2/check/fix can do about it."`
}

// NewFinding gives the wire form.
func NewFinding(f loom.Finding) Finding {
	return Finding{f.Severity, f.Code, f.Kind, f.Name, f.Version, f.Field, f.Value, f.Message, f.Remedy, f.Missing, f.Fixes()}
}

// Fix says which findings to fix, and how.
type Fix struct {
	Code   loom.FindingCode `json:"code" required:"true"`
	Value  string           `json:"value" required:"true" description:"The value of the findings."`
	Kind   loom.EntityKind  `json:"kind,omitempty" description:"The member “missing” of the findings, needed if entries of several kinds are missing under that name."`
	Fix    loom.FindingFix  `json:"fix" required:"true"`
	To     string           `json:"to,omitempty" description:"The entry to name instead, for “replace”."`
	Digest string           `json:"digest,omitempty" description:"That of a dry run: the answer is 409 if the fix would change anything else now."`
}

// ReadFix reads the request.
func ReadFix(body []byte) (catalog.FixInput, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return catalog.FixInput{}, err
	}
	in := catalog.FixInput{Code: loom.FindingCode(o.Text("code")), Values: []string{o.Text("value")}, Missing: loom.EntityKind(o.Text("kind")),
		Fix: loom.FindingFix(o.Text("fix")), To: o.Text("to"), Digest: o.Text("digest")}
	return in, o.Err()
}

// Fixed says what a fix changes.
type Fixed struct {
	Digest  string       `json:"digest" description:"Identifies the entries as they were and what changes in them."`
	Entries []FixedEntry `json:"entries"`
}

// FixedEntry is an entry that a fix changes.
type FixedEntry struct {
	catalog.EntryName
	Version int          `json:"version" description:"The version before the fix."`
	Changes []Difference `json:"changes"`
}

// NewFixed gives the wire form.
func NewFixed(f catalog.Fixed) Fixed {
	out := Fixed{Digest: f.Digest, Entries: make([]FixedEntry, len(f.Entries))}
	for i, e := range f.Entries {
		out.Entries[i] = FixedEntry{e.EntryName, e.Version, NewDifferences(e.Changes)}
	}
	return out
}

// Use is a place where a catalog entry is used; clusters have no field.
type Use struct {
	Kind  loom.EntityKind `json:"kind" description:"A kind as in paths, or “cluster”."`
	Name  string          `json:"name" description:"Name of the entry, or id of the cluster."`
	Field string          `json:"field,omitempty" description:"JSON pointer into the entry."`
}

// NewUse gives the wire form.
func NewUse(u catalog.Use) Use { return Use(u) }

// Difference is a value in which two versions differ. What is not there is left
// out, which a null would not be.
type Difference struct {
	Path string       `json:"path" description:"JSON pointer: into the older version for what is removed, else into the younger one."`
	Sign catalog.Sign `json:"sign"`
	Old  *any         `json:"old,omitempty"`
	New  *any         `json:"new,omitempty"`
}

// NewDifferences gives the wire form of a comparison.
func NewDifferences(found []catalog.Difference) []Difference {
	out := make([]Difference, len(found))
	for i, d := range found {
		out[i] = Difference{Path: d.Path, Sign: d.Sign}
		if d.Sign != catalog.SignAdded {
			out[i].Old = &d.Old
		}
		if d.Sign != catalog.SignRemoved {
			out[i].New = &d.New
		}
	}
	return out
}

// ImportReport says what an import would do.
type ImportReport struct {
	catalog.Report
	Findings []Finding `json:"findings" description:"What of the given entries would not work."`
	// Breaks are what the whole catalog would have of findings and has not now.
	Breaks []Finding     `json:"breaks" description:"What of the whole catalog would not work and works now."`
	Fleet  *FleetPreview `json:"fleet,omitempty" description:"What the changed entries would do to each cluster, if that was asked for."`
}

// NewImportReport gives the wire form.
func NewImportReport(r catalog.Report) ImportReport {
	return ImportReport{Report: r, Findings: newFindings(r.Findings), Breaks: newFindings(r.Breaks)}
}

func newFindings(found []loom.Finding) []Finding {
	out := make([]Finding, len(found))
	for i, f := range found {
		out[i] = NewFinding(f)
	}
	return out
}
