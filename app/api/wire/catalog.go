package wire

import "loom/app/loom"

// Resource is the metadata of a version of a plugin resource (entities.md 12).
type Resource struct {
	Name    string              `json:"name"`
	Version int                 `json:"version"`
	Status  loom.ResourceStatus `json:"status"`
}

// NewResource gives the wire form.
func NewResource(r loom.Resource) Resource {
	return Resource{Name: r.Name, Version: r.Version, Status: r.Status()}
}

// VersionInfo says who stored a version of a catalog entry.
type VersionInfo struct {
	Version int         `json:"version"`
	Author  loom.UserID `json:"author"`
	Time    int64       `json:"time"`
}

// NewVersions gives the wire form of a list of versions.
func NewVersions(infos []loom.VersionInfo) []VersionInfo {
	out := make([]VersionInfo, len(infos))
	for i, v := range infos {
		out[i] = VersionInfo{v.Version, v.Author, Millis(v.Time)}
	}
	return out
}
