package clusterview

import (
	"time"

	"loom/views/ui"
)

// ListModel is the page of all clusters.
type ListModel struct {
	Tabs []ui.Tab
	// Q, Template, Provider and Owner are the filters; Status and Sort are kept in
	// hidden fields.
	Q, Owner, Status, Sort string
	QError                 string
	Templates, Providers   []ui.Option
	ShowOwner              bool
	// Filtered says that a filter narrows the list; ClearHref takes it off.
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
	Rows      []Row
	Now       time.Time
	// Fresh counts clusters that match and are not shown yet; FreshHref shows them.
	Fresh      int
	FreshHref  string
	Pagination ui.PaginationModel
	// Empty is shown without rows.
	Empty ui.EmptyModel
}

// Row is a cluster in the list.
type Row struct {
	ID, Name, Href, Description string
	State                       ui.State
	// Progress is nil when no operation is under way.
	Progress         *ui.ProgressModel
	Template         string
	Nodes            string
	Owner            string
	Created, Expires time.Time
	// LeaseSoon says that the lease ends within 48 hours.
	LeaseSoon bool
	// Deleted is when the machines go, in the time of grace after the lease.
	Deleted  time.Time
	Last     string
	LastHref string
	Menu     []ui.MenuItem
}
