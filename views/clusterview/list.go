package clusterview

import (
	"time"

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
	Rows []Row
	Now  time.Time
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

// Row is a cluster in the list.
type Row struct {
	ID, Name, Href, Description string
	State                       ui.State
	// Template is its name, TemplateText its readable name with the version, Icon its icon.
	Template, TemplateText, Icon string
	// NewerTemplate is the version that is out, 0 for none that is newer.
	NewerTemplate    int
	Protected        bool
	Nodes, NodesText string
	Owner            string
	Expires          time.Time
	// Ended is when a terminated cluster went, the zero time for any other.
	Ended time.Time
	// LeaseSoon says that the lease ends soon.
	LeaseSoon bool
	// Deleted is when the machines go, in the time of grace after the lease.
	Deleted time.Time
	// Running says that an operation runs, for Elapsed so far. Else Change is what was done
	// last, at Changed; ChangeHref leads to it.
	Running            bool
	Elapsed            time.Duration
	Change, ChangeHref string
	Changed            time.Time
	// Open leads to what its services serve, "" without links.
	Open string
	Menu []ui.MenuItem
}
