package loom

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// Limits of Page.Limit.
const (
	DefaultPageLimit = 100
	MaxPageLimit     = 500
)

// Page asks for a part of a list. After and Before are opaque cursors from an
// earlier answer, at most one of them; Sort is a field of the list, with "-"
// before it for descending, "" for the list's default. Limit 0 means the
// default, a negative one everything.
type Page struct {
	Limit  int
	After  string
	Before string
	Sort   string
}

// Cursor is what an opaque cursor holds: the sort it belongs to and the sort
// keys of the row it stands at, the last of which is unique.
type Cursor struct {
	Sort string   `json:"s"`
	Keys []string `json:"k"`
}

// Encode gives the opaque form.
func (c Cursor) Encode() string {
	data, err := json.Marshal(c)
	if err != nil {
		return "" // strings always marshal
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// Check validates the page against the sorts of a list, the first of which is
// the default. It fills in Sort and gives the cursor, nil on the first page.
// keys is the number of keys of the list's cursors.
func (p *Page) Check(keys int, sorts ...string) (*Cursor, error) {
	var errs []FieldError
	if p.Sort == "" && len(sorts) > 0 {
		p.Sort = sorts[0]
	}
	if !slices.Contains(sorts, p.Sort) {
		errs = append(errs, FieldError{"sort", "This list is sorted by " + strings.Join(sorts, ", ") + "."})
	}
	if p.Limit == 0 {
		p.Limit = DefaultPageLimit
	}
	if p.Limit > MaxPageLimit {
		errs = append(errs, FieldError{"limit", "A page has at most " + itoa(MaxPageLimit) + " rows."})
	}
	field, text := "after", p.After
	if p.Before != "" {
		if p.After != "" {
			errs = append(errs, FieldError{"before", "Set either after or before, not both."})
		}
		field, text = "before", p.Before
	}
	if err := InvalidFields(errs); err != nil || text == "" {
		return nil, err
	}
	var c Cursor
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil || c.Sort != p.Sort || len(c.Keys) != keys {
		return nil, InvalidFields([]FieldError{{field, "This cursor belongs to another list or another order; start from the first page."}})
	}
	return &c, nil
}

// CutPage returns the rows of a page in the order of its list, and the cursors of the
// pages beside it, "" where there is none. rows are read in the direction of the page,
// from its cursor on, one more than its limit where there are so many; further says that
// there are more in any case. keys returns the keys of a row's cursor.
func CutPage[R any](p Page, rows []R, further bool, keys func(R) []string) (page []R, next, prev string) {
	if p.Limit > 0 && len(rows) > p.Limit {
		rows, further = rows[:p.Limit], true
	}
	if p.Before != "" {
		slices.Reverse(rows)
	}
	next, prev = PageCursors(p, rows, further, keys)
	return rows, next, prev
}

// PageCursors returns the cursors of the pages beside rows, which are those of a page in
// the order of its list. further says that there are more in the direction of the page.
func PageCursors[R any](p Page, rows []R, further bool, keys func(R) []string) (next, prev string) {
	if len(rows) == 0 {
		return "", ""
	}
	at := func(r R) string { return Cursor{Sort: p.Sort, Keys: keys(r)}.Encode() }
	// Where one came from is always a neighbor.
	back := p.Before != ""
	if back || further {
		next = at(rows[len(rows)-1])
	}
	if back && further || p.After != "" {
		prev = at(rows[0])
	}
	return next, prev
}
