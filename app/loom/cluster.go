package loom

import (
	"maps"
	"time"
)

// Cluster is a set of nodes made from a template. Template and Services are copies
// taken when the cluster was made, or when a service was added: later catalog edits do
// not touch them. The provider is as it is now.
type Cluster struct {
	ID          ClusterID
	Name        string
	Description string
	Owner       Account
	Status      ClusterStatus
	Created     time.Time
	// Expires is the zero time for a cluster that never expires.
	Expires time.Time
	// Provider is the newest version, with ProviderFields in front of its own fields;
	// nothing but its name where it is gone.
	Provider Provider
	// ProviderFields are those that were given for this cluster, without sensitive ones.
	ProviderFields map[string]any
	Template       Template
	Services       map[string]Service
	// Types are what its types of machines say of its provider.
	Types     TypeSettings
	Config    map[string]any
	Labels    map[string]string
	DNSSuffix string
	Protected bool
	// Repair is the owner's policy, in place of what the template says.
	Repair RepairPolicy
	// Revision goes up by one with every change of the cluster or its nodes' plan.
	Revision int
	// LatestOperation is the number of the newest operation, 0 before the first.
	LatestOperation int
	// DeleteWanted is who asked to delete the cluster while an operation ran; it
	// is deleted when that has ended. "" for nobody.
	DeleteWanted UserID
}

// TypeSettings are the entries of hardware and image types for the provider of a cluster, by
// the names of the types, as when it last took them.
type TypeSettings struct {
	Hardware map[string]map[string]string `json:"hardware"`
	Image    map[string]map[string]string `json:"image"`
}

// With returns the settings with others in place of those of the same types.
func (t TypeSettings) With(others TypeSettings) TypeSettings {
	with := TypeSettings{Hardware: map[string]map[string]string{}, Image: map[string]map[string]string{}}
	maps.Copy(with.Hardware, t.Hardware)
	maps.Copy(with.Hardware, others.Hardware)
	maps.Copy(with.Image, t.Image)
	maps.Copy(with.Image, others.Image)
	return with
}

const (
	// MaxRevisions are kept of the configs of a cluster, the newest.
	MaxRevisions = 1000
	// MaxRevisionBytes is what they take of the disk.
	MaxRevisionBytes = 32 << 20
)

// ConfigRevision is a config that a cluster has or had. Revisions count from 1
// per cluster; the oldest of very many are not kept.
type ConfigRevision struct {
	Revision int
	Author   UserID
	// Operation is the number of the operation that brought it.
	Operation int
	Time      time.Time
}

// Progress counts the tasks of an operation; Done holds complete and skipped ones.
type Progress struct {
	Action ClusterAction
	Status OperationStatus
	Total  int
	Done   int
	// Started and Ended are the zero time before.
	Started, Ended time.Time
}

// awaitsFor is how long after an operation the first look is waited for; later it counts as
// missing.
const awaitsFor = 2 * time.Minute

// AwaitsLook reports whether the first look after the end of the operation is still to come.
// Until then the last look, at seen, is out of date. Adding keys changes nothing.
func (p *Progress) AwaitsLook(seen, now time.Time) bool {
	return p.Action != ClusterAuthorize && seen.Before(p.Ended) && now.Sub(p.Ended) < awaitsFor
}

// ClusterSummary is a row of the list of clusters.
type ClusterSummary struct {
	ID          ClusterID
	Name        string
	Description string
	Owner       Account
	Status      ClusterStatus
	Created     time.Time
	Expires     time.Time
	Nodes       int
	Provider    Base
	Template    Base
	Services    []string
	// Linked says that its template publishes links.
	Linked          bool
	LatestOperation int
	Progress        Progress
	// Health is without nodes; its zero status: nothing is known.
	Health ClusterHealth
	// DeletedAt is when the machines go after the lease, the zero time unless the cluster is in
	// its time of grace.
	DeletedAt time.Time
	// Ended is when the last operation of a terminated cluster ended, the zero time for
	// any other.
	Ended time.Time
	// NewestTemplate is the newest released version of the template, 0 where there is none.
	NewestTemplate int
	Revision       int
	Protected      bool
}

// MostLeaseWarning is the longest time before the end of a lease that one is warned of it.
const MostLeaseWarning = 48 * time.Hour

// LeaseSoon reports whether a lease is in its last fifth, at least 15 minutes and at most 48
// hours before its end, or over. A zero end is none.
func LeaseSoon(created, expires, now time.Time) bool {
	if expires.IsZero() {
		return false
	}
	warning := min(max(expires.Sub(created)/5, 15*time.Minute), MostLeaseWarning)
	return expires.Sub(now) < warning
}

// CreateInput is a request for a new cluster. Empty texts
// and empty lists count as unset.
type CreateInput struct {
	Name     string
	Template string
	// TemplateVersion is 0 for the newest released version.
	TemplateVersion int `json:",omitempty"`
	Machines        int
	Description     string
	Provider        string
	ProviderFields  map[string]any
	Services        []string
	HardwareType    string
	ImageType       string
	// LeaseMillis is the wanted initial lease; -1 means the template's, 0 for ever.
	LeaseMillis int64
	DNSSuffix   string
	// Config replaces the template's default config whole; nil means not given.
	Config map[string]any
	// ConfigPatch is a merge patch (RFC 7386) over the template's default config;
	// it excludes Config.
	ConfigPatch map[string]any
	Labels      map[string]string
	OnFailure   string
}

// MaxDescription is the longest description of a cluster, in characters.
const MaxDescription = 1000

// Validate checks shape: name, template, machine count, suffix, lease,
// description. maxMachines is the limit of the installation.
func (in *CreateInput) Validate(maxMachines int) []FieldError {
	errs := CheckName("name", in.Name)
	if in.Template == "" {
		errs = append(errs, FieldError{"clusterTemplate", "Choose a template."})
	}
	if in.TemplateVersion < 0 {
		errs = append(errs, FieldError{"clusterTemplateVersion", "A version is 1 or more. Leave it out for the newest."})
	}
	switch {
	case in.Machines <= 0:
		errs = append(errs, FieldError{"numMachines", "Enter the number of nodes, at least 1."})
	case in.Machines > maxMachines:
		errs = append(errs, FieldError{"numMachines", "This installation makes clusters of at most " + itoa(maxMachines) + " nodes."})
	}
	errs = append(errs, CheckDNSSuffix("dnsSuffix", in.DNSSuffix)...)
	if in.LeaseMillis < -1 {
		errs = append(errs, FieldError{"initialLeaseDuration", "A lease cannot be negative; leave it out for the template's own."})
	}
	if len([]rune(in.Description)) > MaxDescription {
		errs = append(errs, FieldError{"description", "A description has at most " + itoa(MaxDescription) + " characters."})
	}
	if in.Config != nil && in.ConfigPatch != nil {
		errs = append(errs, FieldError{"configPatch", "Set either a config or a patch of the template's, not both."})
	}
	return append(errs, CheckOnFailure("onFailure", in.OnFailure)...)
}

// CheckOnFailure finds what is wrong with the failure policy of a request.
func CheckOnFailure(field, policy string) []FieldError {
	switch policy {
	case "", OnFailureKeep, OnFailureUndo:
		return nil
	}
	return []FieldError{{field, "On failure is “keep” or “undo”."}}
}
