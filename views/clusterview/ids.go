package clusterview

import (
	"strconv"

	"loom/app/loom"
	"loom/views/route"
)

// Ids of the parts of pages that are fetched again. Handlers tell by the header
// HX-Target which part is wanted, where a page and its part share a URL.
const (
	CheckID         = "check"
	CheckProblemID  = "check-problem"
	FormRestID      = "form-rest"
	ListID          = "cluster-list"
	HomeClustersID  = "home-clusters"
	OperationViewID = "operation-view"
	RevealID        = "reveal"
	NodeID          = "node"
	TaskSideID      = "task-side-body"
)

// Part is a live part of a cluster's page.
type Part string

// The parts of a cluster's page.
const (
	PartHead       Part = "head"
	PartOperation  Part = "operation"
	PartConnect    Part = "connect"
	PartNodes      Part = "nodes"
	PartSets       Part = "sets"
	PartServices   Part = "services"
	PartHealth     Part = "health"
	PartOperations Part = "operations"
	PartLeftovers  Part = "leftovers"
	PartSkipped    Part = "skipped"
	PartSaid       Part = "said"
	PartAbout      Part = "about"
)

// ID is the element's id.
func (p Part) ID() string { return "cluster-" + string(p) }

// PartURL is where a part of a cluster's page is fetched again.
func PartURL(id loom.ClusterID, part Part) string {
	return route.Query(route.ClusterPanel(id), "part", string(part))
}

// HomeClustersURL is the fragment of what needs attention and of the clusters that changed last.
func HomeClustersURL() string { return "/home/clusters" }

// FormURL gives the form for a new cluster with what depends on template and
// provider made anew (POST, fragment).
func FormURL() string { return route.ClusterNew() + "/form" }

// EditURL is the form for a new cluster, filled in as a preview was.
func EditURL(id loom.PreviewID) string { return route.Query(route.ClusterNew(), "preview", string(id)) }

// StageTaskID is the id of a task in the list of stages.
func StageTaskID(number int) string { return "stage-task-" + strconv.Itoa(number) }

func rowID(id string) string { return "cluster-" + id }

// TopicTenant signals changes of the tenant's figures.
const TopicTenant = "tenant"

func operationHeadID() string { return "operation-head" }

func taskPanelID() string { return "task-panel" }
