package clusterview

import (
	"cmp"
	"time"

	"loom/app/loom"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// ListModel is the page of all clusters.
type ListModel struct {
	Tabs []ui.Tab
	// Q is what is searched for, Facets are the choices beside it. Hidden keeps what else
	// the address says, Chips are filters among that, with the list without each.
	Q, QError string
	Facets    []ui.FieldModel
	Hidden    []HiddenField
	Chips     []ui.Tab
	// CSV and JSON are the whole filtered list as files; "" offers none.
	CSV, JSON string
	// Filtered says that a filter narrows the list; ClearHref is the list without any.
	Filtered  bool
	ClearHref string
	MayCreate bool
	Table     ListTable
}

// ListTable is the part of the list that is fetched again.
type ListTable struct {
	// Live is where these rows are fetched again.
	Live      string
	Columns   []ui.Column
	ShowOwner bool
	// Only says that these are named ones, without other pages.
	Only bool
	Rows []loom.ClusterSummary
	// Fresh counts clusters that match and are not shown yet; FreshHref shows them.
	Fresh      int
	FreshHref  string
	Pagination ui.PaginationModel
	// MaySelect gives rows boxes, and the bar of what is done to several.
	MaySelect bool
	Bulk      sharedview.BulkBar
	// Empty is shown without rows.
	Empty ui.EmptyModel
}

// TemplateText is what people call a template, with its version.
func TemplateText(t loom.Base) string { return cmp.Or(t.Label, t.Name) + " " + ui.Version(t.Version) }

// badge is the state of a cluster.
func badge(c loom.ClusterSummary, now time.Time) ui.State {
	return ui.ClusterBadge(c.Status, c.Progress, c.Health, now).Of("cluster", c.ID.String())
}

// newer reports whether a newer version of the template is out than the cluster's copy.
func newer(c loom.ClusterSummary) bool {
	return c.Status != loom.ClusterTerminated && c.NewestTemplate > c.Template.Version
}

// changing reports whether an operation runs, changed whether the last one is complete; of others
// the badge says that they failed.
func changing(c loom.ClusterSummary) bool {
	return c.LatestOperation > 0 && c.Progress.Ended.IsZero() && !c.Progress.Started.IsZero()
}

func changed(c loom.ClusterSummary) bool {
	return c.LatestOperation > 0 && !c.Progress.Ended.IsZero() && c.Progress.Status == loom.OperationComplete
}

// opens reports whether its services serve something now.
func opens(c loom.ClusterSummary) bool {
	return c.Linked && c.Status == loom.ClusterActive && c.Health.Status != loom.HealthPartly && c.Health.Status != loom.HealthStopped
}

// listMenu is what can be done to a cluster of the list.
func listMenu(c loom.ClusterSummary) []ui.MenuItem {
	var items []ui.MenuItem
	if lease := route.ClusterLease(c.ID); c.WhyNot(loom.ChangeLease) == "" {
		items = append(items, ui.MenuItem{Label: "Change expiry", Icon: "clock", Href: lease, Attrs: ui.OpensDialog(lease)})
	}
	items = append(items, ui.MenuItem{Label: "Duplicate", Icon: "copy", Href: route.ClusterNewLike(c.ID)})
	if why := c.WhyNot(loom.ChangeDelete); why == "" || c.Protected {
		items = append(items, ui.MenuItem{Label: "Delete", Icon: "trash", Href: route.ClusterDelete(c.ID), Danger: true, WhyNot: why, Divider: true, Attrs: ui.OpensDialog(route.ClusterDelete(c.ID))})
	}
	return items
}
