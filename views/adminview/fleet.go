package adminview

import (
	"loom/app/loom"
	"loom/views/route"
)

// FleetID is the place of the effect of a draft on clusters.
const FleetID = "fleet-effect"

// FleetEffect works out what a draft would do to each cluster (POST).
func FleetEffect(kind loom.EntityKind) string { return route.AdminValidate(kind) + "/clusters" }

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
