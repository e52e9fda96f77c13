package loom

import (
	"slices"
	"time"
)

// ResourceRef names a plugin resource: Kind is "automatortypes" or
// "providertypes", Plugin the plugin type, Type one of its resource types.
type ResourceRef struct {
	Kind   string
	Plugin string
	Type   string
	Name   string
}

// SecretResourceTypes are the resource types whose files are secrets: they are sealed
// when they are uploaded, never shown, and do not stay on the disk of a provisioner.
var SecretResourceTypes = []string{"api_keys", "eyaml_keys", "secrets", "ssh_keys"}

// SecretResource reports whether the files of a resource type are secrets.
func SecretResource(typ string) bool { return slices.Contains(SecretResourceTypes, typ) }

// Resource is one version of a plugin resource.
type Resource struct {
	ResourceRef
	Version int
	// Live is in use now, Slated is in use after the next sync.
	Live, Slated bool
	Size         int64 // bytes
	SHA256       string
	Format       string
	Permissions  string
	// Object is the key in the bucket.
	Object  string
	Sealed  bool
	Created time.Time
	Author  UserID
}

// Status derives from the two flags.
func (r *Resource) Status() ResourceStatus {
	switch {
	case r.Live && r.Slated:
		return ResourceActive
	case r.Live:
		return ResourceRecalled
	case r.Slated:
		return ResourceStaged
	}
	return ResourceInactive
}

// ResourceSummary is a plugin resource with all of its versions.
type ResourceSummary struct {
	// Resource is the newest version.
	Resource
	// LiveVersion is in use now, SlatedVersion is after the next sync; 0 for none.
	LiveVersion, SlatedVersion int
	// Versions is how many there are.
	Versions int
}

// Status is that of the resource as a whole: staged where the next sync puts a version
// in use that is not, recalled where it takes the last one out of use.
func (s *ResourceSummary) Status() ResourceStatus {
	switch {
	case s.SlatedVersion == 0 && s.LiveVersion == 0:
		return ResourceInactive
	case s.SlatedVersion == 0:
		return ResourceRecalled
	case s.SlatedVersion == s.LiveVersion:
		return ResourceActive
	}
	return ResourceStaged
}

// ResourceContent is what can be shown of a version of a plugin resource.
type ResourceContent struct {
	// Secret content is never shown.
	Secret bool
	// Text is that of a text file; Binary files and those that are too Large have none.
	Text          string
	Binary, Large bool
	// Files are those of an archive, More says that there are more of them; Odd is what
	// is not as provisioners expect it.
	Files []ArchiveFile
	More  bool
	Odd   string
}

// ArchiveFile is a file or folder of an archive; Size is in bytes.
type ArchiveFile struct {
	Name string
	Size int64
	Mode string
}

// ResourceUse is what names a plugin resource: services and providers in their fields, by
// kind and name, and other files of its plugin in their text. Of those the version that is
// in use, or else the staged one.
type ResourceUse struct {
	Entries []ResourceUser
	Files   []Resource
}

// ResourceUser is an entry that names a plugin resource: a service by these of its actions.
type ResourceUser struct {
	Kind    EntityKind
	Name    string
	Actions []TaskAction
}

// ResourceCluster is a cluster with nodes that a version of a file was last run on.
type ResourceCluster struct {
	SHA256  string
	Cluster ClusterID
	Name    string
	Nodes   int
}

// TextCheck is what a look at the text of a file tells.
type TextCheck struct {
	// Language is "bash" for all shells, "python", "json", "ruby", "ini", "puppet", "dockerfile",
	// or "" for others.
	Language string
	// Checked says that the text was parsed, as that of shells is. Problem is what is wrong
	// with it, at Line and Column, from 1; "" for nothing.
	Checked      bool
	Problem      string
	Line, Column int
}
