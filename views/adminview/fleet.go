package adminview

import (
	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/route"
)

// FleetID is the place of the effect of a draft on clusters.
const FleetID = "fleet-effect"

// FleetEffect works out what a draft would do to each cluster (POST).
func FleetEffect(kind loom.EntityKind) string { return route.AdminValidate(kind) + "/clusters" }

// FilesFleetEffect works out what the staged files would do to each cluster (POST).
func FilesFleetEffect() string { return FilesRelease() + "/clusters" }

// FleetTitle is the heading of the effect on clusters.
const FleetTitle = "Effect on clusters"

// FleetPanelModel is where a page says what saving, an import or a release would do to clusters.
type FleetPanelModel struct {
	// Action works it out from the fields of a form of the page (POST). Form is the ID of that form,
	// "" where there are no fields.
	Action, Form string
	// Note says in a sentence what it is about.
	Note string
	// Shown is there if it has been worked out.
	Shown *FleetModel
}

// FleetModel is what a draft would do to clusters.
type FleetModel struct {
	// Failed says why that is not known.
	Failed string
	// Text counts the clusters by effect, Price says what an hour costs more or less, "" where that
	// is not known or nothing changes.
	Text, Price string
	Groups      []FleetGroup
}

// FleetGroup are clusters with the same effect for the same reason.
type FleetGroup struct {
	// Text is the effect with the number of clusters, Why the reason.
	Text, Why string
	Bad       bool
	Clusters  []FleetCluster
	More      int
}

// FleetCluster is a cluster of a group.
type FleetCluster struct{ Name, Href string }

// fleetAttrs show the effect in its place.
func fleetAttrs(action string, attrs templ.Attributes) templ.Attributes {
	attrs["hx-post"], attrs["hx-target"], attrs["hx-swap"] = action, "#"+FleetID, "innerHTML"
	return attrs
}
