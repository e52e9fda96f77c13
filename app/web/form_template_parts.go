package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/templateview"
	"loom/views/ui"
)

// regionPart is parts that are exchanged together.
type regionPart struct {
	ID    string
	Parts []form.Part
}

// Read implements form.Part.
func (p regionPart) Read(in *form.Input) { in.Parts(p.Parts) }

// Show implements form.Part.
func (p regionPart) Show(out *form.Output) templ.Component {
	return templateview.Region(p.ID, out.Parts(p.Parts))
}

// boundPart is a number that bounds something; loom.Unlimited is shown as nothing.
type boundPart struct {
	Path                     form.Path
	Label, Help, Placeholder string
}

func (p boundPart) shown(doc *form.Doc) string {
	text := doc.Text(p.Path)
	if text == strconv.Itoa(loom.Unlimited) {
		return ""
	}
	return text
}

// Read implements form.Part.
func (p boundPart) Read(in *form.Input) {
	given, posted := in.Get(p.Path.String())
	if given = strings.TrimSpace(given); !posted || given == p.shown(in.Doc) {
		return
	}
	if given == "" {
		in.Doc.Delete(p.Path)
		return
	}
	if n, err := strconv.Atoi(given); err == nil {
		in.Doc.Set(p.Path, json.Number(strconv.Itoa(n)))
		return
	}
	in.Doc.Set(p.Path, given) // whoever reads the template says what is wrong with it
}

// Show implements form.Part.
func (p boundPart) Show(out *form.Output) templ.Component {
	m := ui.FieldModel{Name: p.Path.String(), Label: p.Label, Help: p.Help, Placeholder: p.Placeholder, Value: p.shown(out.Doc), Optional: true, Width: "xs", Autocomplete: "off",
		Attrs: templ.Attributes{"inputmode": "numeric"}}
	m.ID = out.ID(m.Name)
	m.Error = out.Claim(p.Path, m.ID, p.Label)
	return ui.Field(m)
}

// advicePart says what follows from a choice of services: what they require, what
// they conflict with, and with Mismatch which defaults are not among them.
type advicePart struct {
	// ID is that of the advice, Region that of what holds the choice.
	ID, Region string
	Services   form.Path
	Mismatch   bool
	draft      *templateDraft
}

// Read implements form.Part.
func (p advicePart) Read(in *form.Input) {
	chosen := in.Doc.Texts(p.Services)
	if in.Does("require", p.Services) && len(chosen) > 0 {
		add, _ := loom.RequiredServices(chosen, p.draft.services)
		for _, name := range add {
			in.Doc.Append(p.Services, name)
		}
	}
	if !p.Mismatch {
		return
	}
	for _, m := range mismatches(in.Doc) {
		if !in.Does("drop", m.path) {
			continue
		}
		if m.key != "services" {
			in.Doc.Delete(m.path)
			continue
		}
		gone := nameSet(m.names)
		left := slices.DeleteFunc(in.Doc.Texts(m.path), func(name string) bool { return gone[name] })
		in.Doc.Set(m.path, append([]string{}, left...))
	}
}

// mismatch is what defaults name although it is not compatible.
type mismatch struct {
	key, word string
	path      form.Path
	names     []string
}

func mismatches(doc *form.Doc) []mismatch {
	var found []mismatch
	for _, m := range []struct{ key, list, word string }{
		{"services", "services", "default service"}, {"hardwaretype", "hardwaretypes", "default hardware type"}, {"imagetype", "imagetypes", "default image type"},
	} {
		allowed := doc.Texts(form.At("compatibility", m.list))
		at := form.At("defaults", m.key)
		names := doc.Texts(at)
		if name := doc.Text(at); name != "" {
			names = []string{name}
		}
		has := nameSet(allowed)
		names = slices.DeleteFunc(names, func(name string) bool { return has[name] })
		if len(allowed) > 0 && len(names) > 0 {
			found = append(found, mismatch{m.key, m.word, at, names})
		}
	}
	return found
}

func nameSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// Show implements form.Part.
func (p advicePart) Show(out *form.Output) templ.Component {
	var list []templateview.AdviceModel
	chosen := out.Doc.Texts(p.Services)
	if len(chosen) > 0 {
		list = p.requirements(out, chosen)
	}
	list = append(list, p.conflicts(chosen)...)
	if p.Mismatch {
		for _, m := range mismatches(out.Doc) {
			them := "it"
			if len(m.names) > 1 {
				them, m.word = "them", m.word+"s"
			}
			list = append(list, templateview.AdviceModel{
				Text:   fmt.Sprintf("%s: %s of new clusters, but not compatible any more.", loom.And(m.names), m.word),
				Button: out.Step(ui.ButtonModel{Label: "Take " + them + " out of the defaults", Small: true, ID: out.ID("drop-" + m.key)}, "drop", m.path, p.Region),
			})
		}
	}
	return templateview.Follows(p.ID, out.StepURL, p.Region, templateview.Advice(list))
}

func (p advicePart) requirements(out *form.Output, chosen []string) []templateview.AdviceModel {
	var list []templateview.AdviceModel
	add, open := loom.RequiredServices(chosen, p.draft.services)
	if len(add) > 0 {
		list = append(list, templateview.AdviceModel{
			Text:   fmt.Sprintf("These services require %s, which %s not ticked.", loom.And(add), map[bool]string{true: "is", false: "are"}[len(add) == 1]),
			Button: out.Step(ui.ButtonModel{Label: "Add required " + map[bool]string{true: "service", false: "services"}[len(add) == 1], Icon: "plus", Small: true}, "require", p.Services, p.Region),
		})
	}
	for _, o := range open {
		text := fmt.Sprintf("%s: “%s” is required, and no service is or provides it.", loom.And(o.By), o.Name)
		if len(o.Offers) > 0 {
			text = fmt.Sprintf("%s: “%s” is required; tick %s.", loom.And(o.By), o.Name, loom.Or(o.Offers))
		}
		list = append(list, templateview.AdviceModel{Text: text})
	}
	return list
}

// conflicts tell of services that exclude each other.
func (p advicePart) conflicts(chosen []string) []templateview.AdviceModel {
	var list []templateview.AdviceModel
	for _, foes := range loom.Foes(chosen, p.draft.services) {
		pair := loom.NewPair(foes.A, foes.B)
		text := pair.A + " and " + pair.B + " conflict, so no cluster can have both."
		if p.Mismatch {
			text += " That is fine here: users choose one of them."
		}
		list = append(list, templateview.AdviceModel{Text: text})
	}
	return list
}

// ruleServices are the services that rules of a template can be about.
func (w *templateDraft) ruleServices(t *loom.Template) []string { return matrixServices(t) }

// limitReading says the limits of a service in a sentence.
func limitReading(name string, c loom.ServiceConstraint) string {
	q := loom.Quantities{}
	if c.Quantities != nil {
		q = *c.Quantities
	}
	text := strings.TrimPrefix(quantityRule(name, q), name+" is ")
	if len(c.HardwareTypes) > 0 {
		text = strings.TrimSuffix(text, ".") + ", with " + loom.Or(c.HardwareTypes) + "."
	}
	if len(c.ImageTypes) > 0 {
		text = strings.TrimSuffix(text, ".") + ", with " + loom.Or(c.ImageTypes) + "."
	}
	return text
}

// chosenWords names what is chosen behind a fold.
func chosenWords(lists ...[]string) string {
	names := slices.Concat(lists...)
	if len(names) == 0 {
		return ""
	}
	return ": " + loom.And(names)
}

// keyed is a part of a list by its place, with a title that people know.
func groupTitle(set []string, i int) string {
	return cmp.Or(strings.Join(set, ", "), "Group "+strconv.Itoa(i+1))
}
