package loom

import "time"

// ResourceRef names a plugin resource: Kind is "automatortypes" or
// "providertypes", Plugin the plugin type, Type one of its resource types.
type ResourceRef struct {
	Kind   string
	Plugin string
	Type   string
	Name   string
}

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

// Status derives from the two flags (provisioner.md 2.5).
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
