package form

import (
	"slices"
	"strings"

	"github.com/a-h/templ"

	"loom/views/formview"
	"loom/views/ui"
)

// Choice is something that can be chosen by name.
type Choice struct {
	Value, Label, Description string
	Facts                     []string
	// Deprecated is offered only where it is chosen already.
	Deprecated bool
	// WhyNot disables the choice, unless it is chosen already.
	WhyNot string
}

// Names makes choices of names.
func Names[T ~string](names ...T) []Choice {
	choices := make([]Choice, len(names))
	for i, name := range names {
		choices[i] = Choice{Value: string(name), Label: string(name)}
	}
	return choices
}

// offered gives the choices with the chosen ones marked; chosen ones that are not
// among them follow.
func offered(choices []Choice, values []string) []ui.Choice {
	var out []ui.Choice
	known, chosen := map[string]bool{}, setOf(values)
	for _, c := range choices {
		known[c.Value] = true
		checked := chosen[c.Value]
		if c.Deprecated && !checked {
			continue
		}
		shown := ui.Choice{Value: c.Value, Label: c.Label, Description: c.Description, Facts: c.Facts, Checked: checked, WhyNot: c.WhyNot}
		if shown.Label == "" {
			shown.Label = c.Value
		}
		if checked {
			shown.WhyNot = "" // a disabled box would not be posted
		}
		if c.Deprecated {
			shown.Facts = append(slices.Clone(c.Facts), "deprecated")
		}
		out = append(out, shown)
	}
	for _, v := range values {
		if !known[v] {
			known[v] = true
			out = append(out, ui.Choice{Value: v, Label: v, Checked: true, Facts: []string{"not in the catalog"}})
		}
	}
	return out
}

// Options makes options of a select of choices; deprecated ones only for the value
// that is chosen.
func Options(doc *Doc, p Path, none string, choices []Choice) []ui.Option {
	var options []ui.Option
	if none != "" {
		options = append(options, ui.Option{Value: "", Label: none})
	}
	for _, c := range choices {
		if c.Deprecated && doc.Text(p) != c.Value {
			continue
		}
		label := c.Value
		if c.Label != "" && c.Label != c.Value {
			label = c.Label + " (" + c.Value + ")"
		}
		options = append(options, ui.Option{Value: c.Value, Label: label, WhyNot: c.WhyNot})
	}
	return options
}

// Picker is a list of names, chosen from a list of boxes that can be filtered. The
// order of those that stay is kept; new ones follow.
type Picker struct {
	Path         Path
	Legend, Help string
	Filter       string
	Choices      []Choice
	// Free labels a field for names that are not in the list; empty has none. Several
	// are separated by commas or blanks.
	Free, FreeHelp string
}

// NewName is the name of the control for names that are not in the list.
func NewName(name string) string { return name + "+" }

// Read implements Part.
func (p Picker) Read(in *Input) {
	name := p.Path.String()
	if !in.has(name) {
		return
	}
	given := slices.Clone(in.Values[name])
	more, _ := in.Get(NewName(name))
	given = append(given, strings.FieldsFunc(more, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })...)
	before := in.Doc.Texts(p.Path)
	kept := setOf(given)
	after := slices.DeleteFunc(unique(append(slices.Clone(before), given...)), func(v string) bool { return !kept[v] })
	if slices.Equal(unique(before), after) {
		return
	}
	in.Doc.Set(p.Path, append([]string{}, after...))
}

func unique(texts []string) []string {
	var out []string
	known := map[string]bool{}
	for _, t := range texts {
		if !known[t] {
			known[t] = true
			out = append(out, t)
		}
	}
	return out
}

func setOf(texts []string) map[string]bool {
	set := make(map[string]bool, len(texts))
	for _, t := range texts {
		set[t] = true
	}
	return set
}

// Show implements Part.
func (p Picker) Show(out *Output) templ.Component {
	name := p.Path.String()
	m := ui.ChoiceModel{ID: out.ID(name), Name: name, Legend: p.Legend, Help: p.Help, Filter: p.Filter, Optional: true, Choices: offered(p.Choices, unique(out.Doc.Texts(p.Path)))}
	m.Error = out.claimList(p.Path, m.ID, p.Legend)
	if out.whole {
		return ui.Picker(m)
	}
	var free ui.FieldModel
	if p.Free != "" {
		free = ui.FieldModel{Name: NewName(name), ID: out.ID(NewName(name)), Label: p.Free, Help: p.FreeHelp, Mono: true, Optional: true, Width: "l", Autocomplete: "off"}
	}
	return formview.Picker(ShownName(name), m, free)
}

// claimList claims a list and gives the errors of its members too.
func (out *Output) claimList(p Path, id, label string) string {
	messages := []string{out.Claim(p, id, label)}
	for i := range out.Doc.Len(p) {
		messages = append(messages, out.errs.For(p.To(i).String()))
	}
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(messages, func(m string) bool { return m == "" }), " "))
}

// Cards is a choice of one among few, each with a description.
type Cards struct {
	Path         Path
	Legend, Help string
	Choices      []Choice
	// Fallback counts as chosen where the document has nothing.
	Fallback string
	// Optional leaves the member out when nothing is chosen.
	Optional bool
	// Refresh is the id of a group that depends on the choice.
	Refresh string
}

// Read implements Part.
func (c Cards) Read(in *Input) {
	Field{Path: c.Path, Fallback: c.Fallback}.Read(in)
}

// Show implements Part.
func (c Cards) Show(out *Output) templ.Component {
	m := ui.ChoiceModel{Name: c.Path.String(), Legend: c.Legend, Help: c.Help, Optional: c.Optional}
	m.ID = out.ID(m.Name)
	value := Field{Path: c.Path, Fallback: c.Fallback}.shown(out.Doc)
	chosen := []string{value}
	if value == "" && !slices.ContainsFunc(c.Choices, func(c Choice) bool { return c.Value == "" }) {
		chosen = nil
	}
	m.Choices = offered(c.Choices, chosen)
	m.Error = out.Claim(c.Path, m.ID, c.Legend)
	if c.Refresh != "" {
		m.Attrs = formview.Step(out.StepURL, c.Refresh)
		m.Attrs["hx-trigger"] = "change"
	}
	return formview.Refreshing(ui.RadioCards(m), out.refreshURL(c.Refresh))
}
