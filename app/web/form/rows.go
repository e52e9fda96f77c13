package form

import (
	"slices"

	"github.com/a-h/templ"

	"loom/views/formview"
	"loom/views/ui"
)

// Rows is a repeated group: a list, each place of it shown by the same parts.
type Rows struct {
	Path         Path
	Legend, Help string
	// Noun names one row: "Link" makes "Link 2", "Add link", "Remove link 2".
	Noun string
	// Row makes the parts of the row at a path.
	Row func(at Path) []Part
	// New is what a new row starts as.
	New any
	// Max is the largest number of rows, 0 for no limit.
	Max int
	// Ordered adds buttons that move a row up and down.
	Ordered bool
	// Empty is said where there is no row.
	Empty string
	// AddLabel is the text of the button, instead of “Add” and the noun.
	AddLabel string
	// Inline puts a row on one line where there is room.
	Inline bool
}

// Read implements Part: first the rows, then what the button does.
func (r Rows) Read(in *Input) {
	n := in.Doc.Len(r.Path)
	for i := range n {
		in.Parts(r.Row(r.Path.To(i)))
	}
	switch {
	case in.Does("add", r.Path) && (r.Max == 0 || n < r.Max):
		in.Doc.Append(r.Path, r.New)
		in.Added(r.Path.To(n))
		return
	case in.act != "remove" && in.act != "up" && in.act != "down":
		return
	}
	for i := range n {
		at := r.Path.To(i)
		switch {
		case in.Does("remove", at):
			in.Doc.Delete(at)
			return
		case in.Does("up", at):
			in.Doc.Swap(r.Path, i, i-1)
			return
		case in.Does("down", at):
			in.Doc.Swap(r.Path, i, i+1)
			return
		}
	}
}

// Show implements Part.
func (r Rows) Show(out *Output) templ.Component {
	m := formview.GroupModel{ID: out.ID("group-" + r.Path.String()), Legend: r.Legend, Help: r.Help, Empty: r.Empty, Inline: r.Inline}
	n := out.Doc.Len(r.Path)
	for i := range n {
		at := r.Path.To(i)
		title := r.Noun + " " + itoa(i+1)
		row := formview.RowModel{Title: title}
		out.Within(title, func() {
			out.enter(at)
			row.Parts = out.Parts(r.Row(at))
		})
		if r.Ordered && n > 1 {
			up := ui.ButtonModel{Label: "Move " + lowerFirst(title) + " up", Icon: "arrow-up", IconOnly: true, Small: true, Kind: ui.Quiet}
			down := ui.ButtonModel{Label: "Move " + lowerFirst(title) + " down", Icon: "arrow-down", IconOnly: true, Small: true, Kind: ui.Quiet}
			if i > 0 {
				row.Buttons = append(row.Buttons, out.Step(up, "up", at, m.ID))
			}
			if i < n-1 {
				row.Buttons = append(row.Buttons, out.Step(down, "down", at, m.ID))
			}
		}
		row.Buttons = append(row.Buttons, out.Step(ui.ButtonModel{Label: "Remove " + lowerFirst(title), Icon: "trash", IconOnly: true, Small: true, Kind: ui.Quiet}, "remove", at, m.ID))
		m.Rows = append(m.Rows, row)
	}
	if r.Max == 0 || n < r.Max {
		label := r.AddLabel
		if label == "" {
			label = "Add " + lowerFirst(r.Noun)
		}
		add := out.Step(ui.ButtonModel{Label: label, Icon: "plus", Small: true}, "add", r.Path, m.ID)
		m.Add = &add
	}
	m.Error = out.Claim(r.Path, m.ID, r.Legend)
	return formview.Group(m)
}

// Keyed is a repeated group over an object: each member is a row with its name as
// its title, which is chosen when the row is added and then stays.
type Keyed struct {
	Path         Path
	Legend, Help string
	Noun         string
	// Row makes the parts of the member at a path.
	Row func(at Path, key string) []Part
	// New is what a new member starts as.
	New any
	// Choices are the names that members may have; those that are there are not
	// offered again.
	Choices []Choice
	// ChooseLabel labels the choice of a new row's name.
	ChooseLabel string
	Empty       string
	// Title makes the title of a row; the name itself without.
	Title func(key string) string
	// Inline puts a row on one line where there is room.
	Inline bool
	// Order sorts the names; without it they come as the document has them.
	Order func(a, b string) int
	// After is shown beneath the rows, with the names that are still free.
	After func(free []Choice) templ.Component
}

// NewKeyName is the name of the control that names a new row.
func NewKeyName(p Path) string { return "new:" + p.String() }

// Read implements Part.
func (k Keyed) Read(in *Input) {
	keys := in.Doc.Keys(k.Path)
	for _, key := range keys {
		in.Parts(k.Row(k.Path.To(key), key))
	}
	if in.Does("add", k.Path) {
		if key, _ := in.Get(NewKeyName(k.Path)); key != "" && !slices.Contains(keys, key) {
			in.Doc.Set(k.Path.To(key), k.New)
			in.Added(k.Path.To(key))
		}
		return
	}
	for _, key := range keys {
		if in.Does("remove", k.Path.To(key)) {
			in.Doc.Delete(k.Path.To(key))
			return
		}
	}
}

// Show implements Part.
func (k Keyed) Show(out *Output) templ.Component {
	m := formview.GroupModel{ID: out.ID("group-" + k.Path.String()), Legend: k.Legend, Help: k.Help, Empty: k.Empty, Inline: k.Inline}
	keys := slices.Clone(out.Doc.Keys(k.Path))
	if k.Order != nil {
		slices.SortStableFunc(keys, k.Order)
	}
	for _, key := range keys {
		at := k.Path.To(key)
		row := formview.RowModel{Title: key, Mono: true}
		if k.Title != nil {
			row.Note = k.Title(key)
		}
		out.Within(k.Noun+" "+key, func() {
			out.enter(at)
			row.Parts = out.Parts(k.Row(at, key))
		})
		row.Buttons = []ui.ButtonModel{out.Step(ui.ButtonModel{Label: "Remove " + key, Icon: "trash", IconOnly: true, Small: true, Kind: ui.Quiet}, "remove", at, m.ID)}
		m.Rows = append(m.Rows, row)
	}
	var free []Choice
	for _, c := range k.Choices {
		if !slices.Contains(keys, c.Value) && !c.Deprecated {
			free = append(free, c)
		}
	}
	if len(free) > 0 {
		add := out.Step(ui.ButtonModel{Label: "Add " + lowerFirst(k.Noun), Icon: "plus"}, "add", k.Path, m.ID)
		m.Add = &add
		choose := ui.FieldModel{Name: NewKeyName(k.Path), ID: out.ID(NewKeyName(k.Path)), Label: k.ChooseLabel, LabelHidden: true, Kind: ui.FieldSelect, Optional: true, Width: "s", Options: Options(out.Doc, At("\x00"), "", free)}
		m.Choose = &choose
	}
	if k.After != nil {
		m.After = k.After(free)
	}
	m.Error = out.Claim(k.Path, m.ID, k.Legend)
	return formview.Group(m)
}
