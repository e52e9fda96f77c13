package web

import (
	"slices"
	"strings"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/planner/ties"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// copyAction fills an action with what another one says, of this service or of
// another.
type copyAction struct{ e *serviceEditor }

// Names of its controls; they are no members of the document.
const (
	copyFrom = "copy.from"
	copyTo   = "copy.to"
)

var copyPath = form.At("copy")

// Read implements form.Part.
func (c copyAction) Read(in *form.Input) {
	if !in.Does("copy", copyPath) {
		return
	}
	from, _ := in.Get(copyFrom)
	to, _ := in.Get(copyTo)
	service, action, _ := strings.Cut(from, "/")
	given, there := c.given(in.Doc, service, action)
	switch {
	case from == "":
		in.Fail(form.At("copy", "from"), from, "Choose the action to copy.")
		return
	case !there:
		in.Fail(form.At("copy", "from"), from, "There is no such action any more; choose another one.")
		return
	}
	if to == "" {
		to = action
	}
	if !slices.Contains(actionOrder, loom.TaskAction(to)) {
		in.Fail(form.At("copy", "to"), to, "Choose one of the actions.")
		return
	}
	in.Doc.Set(actionsPath.To(to), given)
	in.Added(actionsPath.To(to))
}

// given is an action of the document (service "") or of a stored service.
func (c copyAction) given(doc *form.Doc, service, action string) (any, bool) {
	if service == "" {
		at := actionsPath.To(action)
		fields := map[string]any{}
		for _, key := range doc.Keys(at.To("fields")) {
			fields[key] = doc.Text(at.To("fields", key))
		}
		return map[string]any{"type": doc.Text(at.To("type")), "fields": fields}, doc.Has(at)
	}
	a, there := c.e.services[service].Provisioner.Actions[loom.TaskAction(action)]
	if a.Fields == nil {
		a.Fields = map[string]string{}
	}
	return a, there
}

// Show implements form.Part.
func (c copyAction) Show(out *form.Output) templ.Component {
	const id = "copy-action"
	from := ui.FieldModel{Name: copyFrom, ID: out.ID(copyFrom), Label: "Copy", Kind: ui.FieldSelect, Optional: true, Width: "m", Options: []ui.Option{{Value: "", Label: "choose an action …"}}}
	for _, key := range out.Doc.Keys(actionsPath) {
		from.Options = append(from.Options, ui.Option{Value: "/" + key, Label: "this service: " + key})
	}
	for _, name := range sortedKeys(c.e.services) {
		for _, a := range actionOrder {
			if s := c.e.services[name]; name != c.e.name && s.Defines(a) {
				from.Options = append(from.Options, ui.Option{Value: name + "/" + string(a), Label: name + ": " + string(a)})
			}
		}
	}
	to := ui.FieldModel{Name: copyTo, ID: out.ID(copyTo), Label: "as", Kind: ui.FieldSelect, Optional: true, Width: "s", Options: []ui.Option{{Value: "", Label: "the same action"}}}
	for _, a := range actionOrder {
		label := string(a)
		if out.Doc.Has(actionsPath.To(label)) {
			label += " (replaces it)"
		}
		to.Options = append(to.Options, ui.Option{Value: string(a), Label: label})
	}
	from.Error, to.Error = out.Claim(form.At("copy", "from"), from.ID, "Copy"), out.Claim(form.At("copy", "to"), to.ID, "Copy as")
	if raw, failed := out.Raw(form.At("copy", "from")); failed {
		selectOption(from.Options, raw)
	}
	button := out.Step(ui.ButtonModel{Label: "Copy action", Icon: "copy", Small: true}, "copy", copyPath, actionsID)
	return adminview.CopyAction(id, from, to, button)
}

func selectOption(options []ui.Option, value string) {
	for i := range options {
		options[i].Selected = options[i].Value == value
	}
}

// actionsID is the id of the group of actions, with what copies into it.
const actionsID = "actions"

// draftService is the document as a service; the error says what cannot be read yet.
// One without a name gets one that nobody has.
func (e *serviceEditor) draftService(doc *form.Doc) (loom.Service, error) {
	named := doc.Clone()
	if strings.TrimSpace(named.Text(form.At("name"))) == "" {
		name := "this-service"
		for _, taken := e.services[name]; taken; _, taken = e.services[name] {
			name += "-"
		}
		named.Set(form.At("name"), name)
	}
	entry, err := catalog.Decode(loom.KindService, []byte(named.String()))
	if err != nil {
		return loom.Service{}, err
	}
	service, _ := entry.(*loom.Service)
	return *service, nil
}

// pictureOf is what the draft has to do with other services.
type pictureOf struct{ e *serviceEditor }

// hopsName is the control that says how far the picture reaches.
const hopsName = "picture.hops"

// Read implements form.Part: the picture follows from the rest.
func (p pictureOf) Read(*form.Input) {}

// Show implements form.Part.
func (p pictureOf) Show(out *form.Output) templ.Component {
	m := adminview.DraftPicture{ID: "draft-picture", StepURL: out.StepURL, Watch: "dependencies"}
	hops := hopsOf(p.e.r.FormValue(hopsName))
	m.Hops = ui.FieldModel{Name: hopsName, ID: out.ID(hopsName), Label: "How far it reaches", Kind: ui.FieldSelect, Width: "s"}
	for n := 1; n <= ties.MaxHops; n++ {
		m.Hops.Options = append(m.Hops.Options, ui.Option{Value: itoaHop(n), Label: ui.Count(n, "hop", "hops"), Selected: n == hops})
	}
	m.Button = out.Step(ui.ButtonModel{Label: "Draw again", Icon: "rotate", Small: true}, "refresh", form.At("picture"), m.ID)
	service, err := p.e.draftService(out.Doc)
	if err != nil {
		m.Problem = "It can be drawn when the dependencies can be read: " + loom.AsError(err).Message
		return adminview.Picture(m)
	}
	all := make(map[string]loom.Service, len(p.e.services)+1)
	for name, s := range p.e.services {
		all[name] = s
	}
	all[service.Name] = service
	href := func(name string) string {
		if _, stored := p.e.services[name]; !stored {
			return ""
		}
		return route.AdminEntry(loom.KindService, name)
	}
	m.Ties = serviceTies(all, service.Name, hops, "", href)
	m.Ties.Hops = nil
	return adminview.Picture(m)
}

func itoaHop(n int) string { return string(rune('0' + n)) }

// order is when the actions of the draft would run in a new cluster of a template.
func (e *serviceEditor) order() form.Section {
	return form.Section{ID: "order", Title: "Order preview", Help: "When these actions would run in a new cluster of a template. Nothing is made or saved.", Parts: []form.Part{orderOf{e}}}
}

type orderOf struct{ e *serviceEditor }

// orderName is the control with the template that is asked about.
const orderName = "order.template"

// Read implements form.Part: the order follows from the rest.
func (o orderOf) Read(*form.Input) {}

// Show implements form.Part.
func (o orderOf) Show(out *form.Output) templ.Component {
	chosen := o.e.r.FormValue(orderName)
	m := adminview.DraftOrder{ID: "draft-order", Service: out.Doc.Text(form.At("name"))}
	if m.Service == "" {
		m.Service = "this service"
	}
	m.Template = ui.FieldModel{Name: orderName, ID: out.ID(orderName), Label: "Template", Kind: ui.FieldSelect, Width: "m", Options: templateOptions(o.e.templates, o.e.name, chosen)}
	m.Button = out.Step(ui.ButtonModel{Label: "Show the order", Small: true}, "order", form.At("order"), m.ID)
	if o.e.r.FormValue(form.FieldDo) != "order:order" {
		return adminview.Order(m)
	}
	service, err := o.e.draftService(out.Doc)
	if err != nil {
		m.Result.Problem = "The definition must be readable first: " + loom.AsError(err).Message
		return adminview.Order(m)
	}
	m.Breaks = o.e.s.broken(o.e.r, o.e.actor, &service, true)
	if chosen == "" {
		return adminview.Order(m)
	}
	if m.Result, err = o.e.s.orderResult(o.e.r.Context(), o.e.actor, chosen, service); err != nil {
		o.e.s.Log.Error("the order of a draft could not be worked out", "error", err.Error())
		m.Result.Problem = "It could not be worked out just now; try again."
	}
	return adminview.Order(m)
}
