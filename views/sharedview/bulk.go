package sharedview

import (
	"slices"

	"loom/views/ui"
)

// BulkBar is what can be done to the rows that are selected.
type BulkBar struct {
	// Noun is what the rows are: "cluster".
	Noun string

	// Filters are names and values of the list's filters, for "select all".
	Filters []string
	Total   int
	// All says how many "all" are: "213 clusters".
	All string
	// Buttons send the form, each where it says.
	Buttons []ui.ButtonModel
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

// BulkModel asks about something that is done to several rows of a list.
type BulkModel struct {
	// Noun is what the rows are: "cluster". Action is where the form goes.
	Noun, Action, Title, Intro string
	Columns                    []ui.Column
	Rows                       []BulkRow
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

// BulkRow is a row with what would be done to it.
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

// DoneModel holds the results, below the rows of changed objects if there are any.
type DoneModel struct {
	Noun    string
	Title   string
	Summary ui.BannerModel
	Rows    []DoneRow
	Back    string
}

// DoneRow is what came of one of them.
type DoneRow struct {
	Name, Href string
	OK         bool
	Text       string
}
