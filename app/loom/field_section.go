package loom

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Titles of sections. Plugins may name others.
const (
	SectionCredentials = "Credentials"
	SectionNetwork     = "Network"
	SectionMachines    = "Machines"
	// SectionSettings has the fields without a group.
	SectionSettings = "Settings"
	// SectionAdvanced is the last one, and folded.
	SectionAdvanced = "Advanced"
)

// Limits of the place of a field.
const (
	MaxFieldTitle   = 60    // characters, of a group and of a method
	MaxFieldOrder   = 10000 // the highest order
	MaxFieldMethods = 6     // of one group
)

// FieldSection is a heading of a form with its fields, in their order.
type FieldSection struct {
	Title string
	Names []string
	// Methods are the choices of one that some of the fields belong to.
	Methods []string
}

// Names gives the fields in the order in which forms show them: by their order, then
// those of required sets, then the others by label.
func (g FieldGroup) Names() []string {
	required := map[string]int{}
	for _, set := range g.Required {
		for _, name := range set {
			if _, known := required[name]; !known {
				required[name] = len(required) - len(g.Fields)
			}
		}
	}
	place := func(name string) int {
		if order := g.Fields[name].Order; order != 0 {
			return order
		}
		return MaxFieldOrder + 1
	}
	names := slices.Collect(maps.Keys(g.Fields))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(required[a], required[b]),
			strings.Compare(strings.ToLower(g.Fields[a].Label), strings.ToLower(g.Fields[b].Label)), strings.Compare(a, b))
	})
	return names
}

// Sections gives the headings of the form of the fields, each where its first field comes.
func (g FieldGroup) Sections() []FieldSection {
	var sections []FieldSection
	for _, name := range g.Names() {
		f := g.Fields[name]
		title := f.Section()
		at := slices.IndexFunc(sections, func(s FieldSection) bool { return s.Title == title })
		if at < 0 {
			at = len(sections)
			sections = append(sections, FieldSection{Title: title})
		}
		s := &sections[at]
		s.Names = append(s.Names, name)
		if f.Method != "" && !slices.Contains(s.Methods, f.Method) {
			s.Methods = append(s.Methods, f.Method)
		}
	}
	slices.SortStableFunc(sections, func(a, b FieldSection) int {
		return cmp.Compare(b2i(a.Title == SectionAdvanced), b2i(b.Title == SectionAdvanced))
	})
	return sections
}

func b2i(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// MethodOf says which method of a section is in use where given reports which fields have
// a value; a switch has one when it is on. Plugins try the methods from the last to the
// first, so the last complete one counts, else that with the most values, else that of the
// first required set. "" where there are no methods.
func (g FieldGroup) MethodOf(s FieldSection, given func(name string) bool) string {
	if len(s.Methods) == 0 {
		return ""
	}
	needed := map[string]bool{}
	for _, set := range g.Required {
		for _, name := range set {
			needed[name] = true
		}
	}
	best, most := "", 0
	for _, method := range s.Methods {
		have, lacks := 0, false
		for _, name := range s.Names {
			switch {
			case g.Fields[name].Method != method:
			case given(name):
				have++
			case needed[name]:
				lacks = true
			}
		}
		if have > 0 && !lacks {
			have = len(g.Fields) + 1 // complete
		}
		if have > most || have > len(g.Fields) {
			best, most = method, have
		}
	}
	if best != "" {
		return best
	}
	if len(g.Required) > 0 {
		for _, name := range g.Required[0] {
			if slices.Contains(s.Names, name) && g.Fields[name].Method != "" {
				return g.Fields[name].Method
			}
		}
	}
	return s.Methods[0]
}

// Fitting are the required sets that can be completed with the methods in use, by the
// title of their section.
func (g FieldGroup) Fitting(methods map[string]string) [][]string {
	var sets [][]string
	for _, set := range g.Required {
		if !slices.ContainsFunc(set, func(name string) bool {
			f := g.Fields[name]
			return f.Method != "" && f.Method != methods[f.Section()]
		}) {
			sets = append(sets, set)
		}
	}
	return sets
}

// Section is the title of the section that a field is in.
func (f FieldSchema) Section() string { return cmp.Or(f.Group, SectionSettings) }

// IsMethod reports whether a field is the switch of a method: it is on while the method is
// in use, and forms do not show it.
func (f FieldSchema) IsMethod() bool { return f.Type == "checkbox" && f.Method != "" }

// checkPlace checks the place of a field; at is its path.
func (f FieldSchema) checkPlace(at string) []FieldError {
	var errs []FieldError
	for _, title := range []struct{ field, text string }{{"group", f.Group}, {"method", f.Method}} {
		if utf8.RuneCountInString(title.text) > MaxFieldTitle || title.text != strings.TrimSpace(title.text) || strings.ContainsFunc(title.text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			errs = append(errs, FieldError{at + "." + title.field, fmt.Sprintf("Enter a title of at most %d characters, without blanks around it.", MaxFieldTitle)})
		}
	}
	if f.Order < 0 || f.Order > MaxFieldOrder {
		errs = append(errs, FieldError{at + ".order", fmt.Sprintf("Enter 0–%d.", MaxFieldOrder)})
	}
	return errs
}

// checkMethods refuses sections with more methods than forms can show; at is the path of the group.
func (g FieldGroup) checkMethods(at string) []FieldError {
	for _, s := range g.Sections() {
		if len(s.Methods) > MaxFieldMethods {
			return []FieldError{{at + ".fields", fmt.Sprintf("The group “%s” has %d methods; use at most %d.", s.Title, len(s.Methods), MaxFieldMethods)}}
		}
	}
	return nil
}
