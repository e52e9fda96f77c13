package clusterview

import (
	"slices"
	"time"

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
	Rows      []Row
	Now       time.Time
	// Fresh counts clusters that match and are not shown yet; FreshHref shows them.
	Fresh      int
	FreshHref  string
	Pagination ui.PaginationModel
	// MaySelect gives rows boxes, and the bar of what is done to several.
	MaySelect bool
	Bulk      BulkBar
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
	Created, Expires time.Time
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

// BulkBar is what can be done to the clusters that are selected.
type BulkBar struct {
	// Filters are names and values of the list's filters, for "select all".
	Filters []string
	Total   int
	// All says how many "all" are: "213 clusters".
	All string
	// Owners says that other owners may be given to them.
	Owners bool
}

// pairs are the filters that are set.
func (m BulkBar) pairs() [][2]string {
	var out [][2]string
	for i := 0; i+1 < len(m.Filters); i += 2 {
		if m.Filters[i+1] != "" {
			out = append(out, [2]string{m.Filters[i], m.Filters[i+1]})
		}
	}
	return out
}

// BulkModel asks about something that is done to several clusters.
type BulkModel struct {
	// Verb is the action in the path: "delete" or "lease".
	Verb, Title, Intro string
	Columns            []ui.Column
	Rows               []BulkRow
	// Facts sum the previews up.
	Facts []ui.Def
	// Warning is said above; Nothing is why there is nothing to do.
	Warning, Nothing string
	Errors           ui.FormErrors
	// Fields are those of the form; Button does it.
	Fields []ui.FieldModel
	Button ui.ButtonModel
	// Confirm is the text that has to be typed, "" for none.
	Confirm string
	Back    string
}

// BulkRow is a cluster with what would be done to it.
type BulkRow struct {
	// Key is sent with the form: the id with the revision that was shown; "" where
	// nothing is done.
	Key, Name, Href string
	State           ui.State
	Cells           []string
	// WhyNot says why nothing is done to it.
	WhyNot string
}

func (m BulkModel) some() bool {
	return slices.ContainsFunc(m.Rows, func(r BulkRow) bool { return r.Key != "" })
}

// DoneModel tells what came of it.
type DoneModel struct {
	Title   string
	Summary ui.BannerModel
	Rows    []DoneRow
	Back    string
}

// DoneRow is what came of one cluster.
type DoneRow struct {
	Name, Href string
	OK         bool
	Text       string
	// More leads to the operation that was begun.
	More, MoreHref string
}
