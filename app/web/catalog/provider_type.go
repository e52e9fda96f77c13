package catalog

import (
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/formview"
)

// typePath is the type of a provider.
var typePath = form.At("providertype")

// Verbs of the buttons that show the types, and that choose one.
const (
	doChangeType = "change"
	doChooseType = "choose"
)

// typePart is the choice of the type of a new provider, or the button that leads to it.
type typePart struct {
	types    []loom.PluginType
	choosing bool
}

// Read implements form.Part.
func (p typePart) Read(in *form.Input) {
	form.Field{Path: typePath}.Read(in)
	for _, t := range p.types {
		if in.Does(doChooseType, typePath.To(t.Name)) {
			in.Doc.Set(typePath, t.Name)
			in.Added(form.At("provisioner"))
		}
	}
}

// Show implements form.Part.
func (p typePart) Show(out *form.Output) templ.Component {
	chosen := out.Doc.Text(typePath)
	m := adminview.TypeModel{Name: typePath.String(), ID: out.ID(typePath.String()), Chosen: chosen, StepURL: out.StepURL, Choosing: p.choosing}
	words := loom.Describe(loom.KindProvider, m.Name)
	m.Error = out.Claim(typePath, m.ID, words.Label)
	m.Help, m.Attrs = words.Help, formview.Step(out.StepURL, settingsID)
	m.Change = doChangeType + ":" + typePath.String()
	for _, t := range p.types {
		if t.Deprecated && t.Name != chosen {
			continue
		}
		c := adminview.TypeChoice{Name: t.Name, Label: t.Label, Description: t.Description, Icon: t.Icon, Do: doChooseType + ":" + typePath.To(t.Name).String(), Chosen: t.Name == chosen}
		if c.Label == "" {
			c.Label = t.Name
		}
		if strings.EqualFold(c.Label, t.Name) {
			c.Name = ""
		}
		m.Types = append(m.Types, c)
	}
	return adminview.Types(m)
}
