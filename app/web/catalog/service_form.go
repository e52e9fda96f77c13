package catalog

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/planner/dependencies"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// serviceEditor is what the form of a service needs to know of the catalog.
type serviceEditor struct {
	s         *Server
	r         *http.Request
	actor     loom.Actor
	name      string
	services  map[string]loom.Service
	templates []loom.Entry
	types     map[string]loom.PluginType
	// typeNames are the automator types in the order in which they are offered.
	typeNames []string
	resources []loom.Resource
	// common is the script that all actions of the draft run, "" for several.
	common string
}

// serviceForm is the form of a service: what it is, what it needs, what it does.
func serviceForm(s *Server, r *http.Request, actor loom.Actor, d formDraft) (form.Form, error) {
	e := &serviceEditor{s: s, r: r, actor: actor, name: d.Name, types: map[string]loom.PluginType{}}
	found, err := s.Catalog.Newest(r.Context(), actor, loom.KindService, loom.KindTemplate)
	if err != nil {
		return form.Form{}, err
	}
	e.services, e.templates = page.ServicesIn(found), found[loom.KindTemplate]
	types, err := s.Catalog.PluginTypes(r.Context(), actor, loom.KindAutomatorType)
	if err != nil {
		return form.Form{}, err
	}
	for _, t := range types {
		e.types[t.Name] = t
		e.typeNames = append(e.typeNames, t.Name)
	}
	filter := catalog.ResourceFilter{ResourceRef: loom.ResourceRef{Kind: string(loom.KindAutomatorType)}}
	if e.resources, err = s.Catalog.Resources(r.Context(), actor, filter); err != nil {
		return form.Form{}, err
	}
	return form.Form{
		Sections: []form.Section{
			e.about(d), e.actions(), e.parameters(), e.health(), e.dependencies(d.Doc), e.links(), e.advanced(d.Doc),
		},
		Settle: e.settle, Check: e.check,
	}, nil
}

// about is the usual first section, with the icons of the installation to choose from.
func (e *serviceEditor) about(d formDraft) form.Section {
	section := aboutSection(d, "")
	icon := form.At("icon")
	var options []ui.Option
	options = append(options, ui.Option{Value: "", Label: "the usual one"})
	options = append(options, ui.EntryIcons...)
	for i, part := range section.Parts {
		fold, isFold := part.(form.Fold)
		if !isFold {
			continue
		}
		fold.Parts = slices.Clone(fold.Parts)
		for k, p := range fold.Parts {
			if f, isField := p.(form.Field); isField && f.Path.String() == icon.String() {
				fold.Parts[k] = form.Field{Path: icon, Odd: "a reference of its own", Face: ui.FieldModel{Label: "Icon", Kind: ui.FieldSelect, Optional: true, Width: "m", Options: options,
					Help: "Shown in pictures of services."}}
			}
		}
		section.Parts[i] = fold
	}
	return section
}

// dependencies are what the service has to do with others: a table of services and relations,
// the names that it provides, and a picture.
func (e *serviceEditor) dependencies(doc *form.Doc) form.Section {
	return form.Section{ID: "dependencies", Title: "Dependencies", Parts: []form.Part{
		form.Fold{Title: "Services", Key: "dependencies", Says: relationsText, Open: true, Parts: []form.Part{relations{e}}},
		form.Folds{e.provides(doc), {Title: "Picture", Parts: []form.Part{pictureOf{e}}}},
	}}
}

// waits says how far the service waits for those that it needs.
func waits(doc *form.Doc) form.Part {
	scope := form.Field{Path: form.At("dependencies", "install", "scope"), Odd: "unknown", Face: ui.FieldModel{Label: "Wait for", Kind: ui.FieldSelect, Optional: true, Width: "l",
		Help:    "For “Install requires” and “Install uses”. “On the same node” is faster if nodes do not need each other.",
		Options: []ui.Option{{Value: "", Label: "every node with them"}, {Value: "cluster", Label: "every node with them (written out)"}, {Value: "node", Label: "the same node only, where they are on it"}}}}
	if doc.Text(scope.Path) != "cluster" {
		scope.Face.Options = slices.Delete(scope.Face.Options, 1, 2)
	}
	return scope
}

// holds says what a list holds, before the fold that it is in is opened.
func holds(p form.Path) func(*form.Doc) string {
	return func(doc *form.Doc) string { return ": " + cmp.Or(some(doc.Texts(p)), "none") }
}

// some names the first few of a list.
func some(names []string) string {
	const most = 4
	if n := len(names); n > most {
		return strings.Join(names[:most], ", ") + " and " + ui.Count(n-most, "more", "more")
	}
	return strings.Join(names, ", ")
}

// needChoices are the services and the names that they provide.
func (e *serviceEditor) needChoices() []form.Choice {
	var entries []loom.Entry
	providers := map[string][]string{}
	for _, name := range page.SortedKeys(e.services) {
		s := e.services[name]
		entries = append(entries, &s)
		for _, also := range s.Dependencies.Provides {
			if _, is := e.services[also]; !is && also != e.name {
				providers[also] = append(providers[also], name)
			}
		}
	}
	choices := without(choicesOf(entries), e.name)
	for _, name := range page.SortedKeys(providers) {
		choices = append(choices, form.Choice{Value: name, Label: name, Facts: []string{"provided by " + loom.And(providers[name])}})
	}
	return choices
}

// provides offers the names that others ask for and no service has.
func (e *serviceEditor) provides(doc *form.Doc) form.Fold {
	p := form.At("dependencies", "provides")
	asked := map[string][]string{}
	for _, t := range dependencies.Of(e.services).Vertices {
		if t.Sort == dependencies.Name || t.Sort == dependencies.Missing {
			asked[t.Name] = nil
		}
	}
	for _, name := range page.SortedKeys(e.services) {
		d := e.services[name].Dependencies
		for _, wanted := range slices.Concat(d.Install.Requires, d.Install.Uses, d.Runtime.Requires, d.Runtime.Uses) {
			if by, known := asked[wanted]; known && (len(by) == 0 || by[len(by)-1] != name) {
				asked[wanted] = append(asked[wanted], name)
			}
		}
	}
	var choices []form.Choice
	for _, name := range page.SortedKeys(asked) {
		c := form.Choice{Value: name, Label: name}
		if len(asked[name]) > 0 {
			c.Facts = []string{"asked for by " + loom.And(asked[name])}
		}
		choices = append(choices, c)
	}
	for _, name := range doc.Texts(p) {
		if _, known := asked[name]; !known {
			choices = append(choices, form.Choice{Value: name, Label: name})
		}
	}
	words := loom.Describe(loom.KindService, "dependencies", "provides")
	return form.Fold{Title: words.Label, Key: p.String(), Says: holds(p), Parts: []form.Part{form.Picker{Path: p, Legend: words.Label, Filter: "Filter names", Choices: choices,
		Help: words.Help,
		Free: "More names", FreeHelp: "Separate several by commas."}}}
}

// onShrink says whether a machine with the service may leave its cluster.
func onShrink(doc *form.Doc) form.Part {
	words := loom.Describe(loom.KindService, "shrink")
	shrink := form.Field{Path: form.At("shrink"), Odd: "unknown", Face: ui.FieldModel{Label: words.Label, Help: words.Help, Kind: ui.FieldSelect, Optional: true, Width: "l",
		Options: []ui.Option{{Value: "", Label: "it may leave"}, {Value: "allow", Label: "it may leave (written out)"}, {Value: "refuse", Label: "refuse: nodes with this service stay"}}}}
	if doc.Text(shrink.Path) != "allow" {
		shrink.Face.Options = slices.Delete(shrink.Face.Options, 1, 2)
	}
	return shrink
}

// parameters are the keys of the config that the service reads.
func (e *serviceEditor) parameters() form.Section {
	words := loom.Describe(loom.KindService, "parameters")
	types := []ui.Option{}
	for _, t := range loom.ParameterTypes {
		types = append(types, ui.Option{Value: string(t), Label: string(t)})
	}
	row := func(at form.Path) []form.Part {
		field := func(name, label, help, width string) form.Field {
			return form.Field{Path: at.To(name), Face: ui.FieldModel{Label: label, Help: help, Width: width, Optional: true, Autocomplete: "off"}}
		}
		tick := func(name, label, help string) form.Field {
			return form.Field{Path: at.To(name), Face: ui.FieldModel{Label: label, Help: help, Kind: ui.FieldCheckbox}}
		}
		key := field("key", "Key", "", "m")
		key.Empty, key.Face.Optional, key.Face.Mono, key.Face.Placeholder, key.Face.MaxLength = form.EmptyText, false, true, "web.title", loom.MaxParameterKey
		label := field("label", "Label", "", "m")
		label.Face.MaxLength = loom.MaxParameterLabel
		kind := form.Field{Path: at.To("type"), Fallback: string(loom.ParameterText), Odd: "unknown", Face: ui.FieldModel{Label: "Type", Kind: ui.FieldSelect, Width: "s", Options: types}}
		help := field("help", "Help", "", "full")
		help.Face.MaxLength = loom.MaxParameterHelp
		pattern := field("pattern", "Pattern", "An RE2 expression that the whole text must match.", "l")
		pattern.Face.Mono = true
		options := form.Words{Path: at.To("options"), Lines: true, Face: ui.FieldModel{Label: "Options", Help: "Of a choice, one a line.", Kind: ui.FieldTextarea, Rows: 3, Optional: true, Width: "l"}}
		return []form.Part{
			key, label, kind, field("default", "Default", "", "m"), tick("required", "Required", ""), tick("secret", "Secret", ""),
			form.Fold{Title: "More", Key: at.String(), Says: limitsOf(at), Parts: []form.Part{
				help, options, pattern,
				form.Row{Parts: []form.Part{field("min", "Minimum", "For text, the number of characters.", "s"), field("max", "Maximum", "", "s")}},
				tick("restart", "Needs a restart", "Changing it restarts the service."),
			}},
		}
	}
	return form.Section{ID: "parameters", Title: words.Label, Parts: []form.Part{
		form.Rows{Path: form.At("parameters"), Noun: "Parameter", New: map[string]any{"key": "", "type": string(loom.ParameterText)}, Max: loom.MaxParameters, Ordered: true, Inline: true,
			Empty: "No parameters. They are keys of the config that users set, with a type that is checked.", Row: row},
	}}
}

// limitsOf is what the fold of a parameter says before it is opened.
func limitsOf(at form.Path) func(*form.Doc) string {
	return func(doc *form.Doc) string {
		var set []string
		for _, name := range []string{"help", "options", "pattern", "min", "max", "restart"} {
			if doc.Text(at.To(name)) != "" || doc.Len(at.To(name)) > 0 {
				set = append(set, name)
			}
		}
		if len(set) == 0 {
			return ""
		}
		return ": " + strings.Join(set, ", ")
	}
}

// health is how the service is watched on each node.
func (e *serviceEditor) health() form.Section {
	field := func(kind ui.FieldKind, width string, steps ...any) form.Field {
		at := form.At("check").To(steps...)
		words := loom.Describe(loom.KindService, strings.Split(at.String(), ".")...)
		return form.Field{Path: at, Face: ui.FieldModel{Label: words.Label, Help: words.Help, Kind: kind, Optional: true, Width: width, Mono: kind != ui.FieldNumber, Autocomplete: "off"}}
	}
	lines := func(steps ...any) form.Part {
		at := form.At(steps...)
		words := loom.Describe(loom.KindService, strings.Split(at.String(), ".")...)
		return form.Words{Path: at, Face: ui.FieldModel{Label: words.Label, Help: words.Help + " Separate several by blanks.", Optional: true, Width: "full", Mono: true, Autocomplete: "off"}}
	}
	number := func(name string) form.Part { return field(ui.FieldNumber, "s", name) }
	command := field("", "full", "command")
	command.Face.Help = "Runs as root on the node, where the start action runs. Exit status 0 passes."
	folds := form.Folds{
		{Title: "URL", Key: "check.http", Says: says("http", "url"), Parts: []form.Part{field("", "full", "http", "url"), form.Row{Parts: []form.Part{field("", "m", "http", "status"), field("", "l", "http", "contains")}}}},
		{Title: "Port", Key: "check.tcp", Says: says("tcp", "port"), Parts: []form.Part{field(ui.FieldNumber, "s", "tcp", "port")}},
		{Title: "Times", Key: "check.times", Parts: []form.Part{form.Row{Parts: []form.Part{number("interval"), number("timeout"), number("grace")}}, form.Row{Parts: []form.Part{number("failures"), number("passes")}}}},
		{Title: "Logs, watched files", Key: "logs", Says: logsText, Parts: []form.Part{lines("files"), lines("logs", "units"), lines("logs", "files")}},
	}
	return form.Section{ID: "health", Title: "Checks, logs, files", Help: "A command, a URL or a port; without any, the first link to the node.", Parts: []form.Part{command, folds}}
}

// logsText is what the fold of logs and watched files says before it is opened.
func logsText(doc *form.Doc) string {
	n := doc.Len(form.At("files")) + doc.Len(form.At("logs", "units")) + doc.Len(form.At("logs", "files"))
	return ": " + map[bool]string{true: strconv.Itoa(n), false: "none"}[n > 0]
}

// says is what a fold of a check says before it is opened.
func says(steps ...any) func(*form.Doc) string {
	return func(doc *form.Doc) string {
		if text := doc.Text(form.At("check").To(steps...)); text != "" {
			return ": " + text
		}
		return ": none"
	}
}

// links are published for each machine with the service.
func (e *serviceEditor) links() form.Section {
	return form.Section{ID: "links", Title: "Links", Parts: []form.Part{
		form.Rows{Path: form.At("links"), Noun: "Link", New: map[string]any{"url": ""}, Empty: "There are no links.", Inline: true, Row: func(at form.Path) []form.Part {
			return []form.Part{
				form.Field{Path: at.To("url"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "URL", Mono: true, Width: "full", Placeholder: "http://%ip.access_v4.self%:8080/", Autocomplete: "off"}},
				form.Field{Path: at.To("label"), Face: ui.FieldModel{Label: "Label", Optional: true}},
			}
		}},
		form.Note{Component: adminview.LinkPatterns(linkPatterns)},
	}}
}

// linkPatterns are macros that make sense in a link.
var linkPatterns = []ui.Def{
	{Term: "%ip.access_v4.self%", Text: "the node's address as users reach it"},
	{Term: "%host.self%", Text: "the node's host name"},
	{Term: "%ip.access_v4.service.NAME[0]%", Text: "the address of the first node with a service"},
	{Term: "%instance.self.service.NAME%", Text: "the node's number among those with a service, from 1"},
	{Term: "%%", Text: "a percent sign"},
}

// advanced is what few services need.
func (e *serviceEditor) advanced(doc *form.Doc) form.Section {
	words := loom.Describe(loom.KindService, "defaultConfig")
	set := func(doc *form.Doc) string {
		return map[bool]string{true: ": set", false: ": none"}[len(doc.Keys(form.At("defaultConfig"))) > 0]
	}
	return form.Section{ID: "advanced", Title: "Advanced", Parts: []form.Part{form.Folds{
		{Title: "Default configuration", Key: "defaultConfig", Says: set, Parts: []form.Part{form.JSON{Path: form.At("defaultConfig"), Label: words.Label, Help: words.Help, Object: true, Rows: 8}}},
		{Title: "Waiting and leaving", Key: "waiting", Says: func(doc *form.Doc) string {
			return map[bool]string{true: ": nodes with it stay"}[doc.Text(form.At("shrink")) == "refuse"]
		}, Parts: []form.Part{waits(doc), onShrink(doc)}},
		{Title: "Order preview", Open: e.r.FormValue(form.FieldDo) == "order:order", Parts: []form.Part{orderOf{e}}},
	}}}
}

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
		in.Fail(form.At("copy", "from"), from, "This action no longer exists. Choose another one.")
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
	for _, name := range page.SortedKeys(c.e.services) {
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
	hops := page.HopsOf(p.e.r.FormValue(hopsName))
	m.Hops = ui.FieldModel{Name: hopsName, ID: out.ID(hopsName), Label: "How far it reaches", Kind: ui.FieldSelect, Width: "s"}
	for n := 1; n <= dependencies.MaxDistance; n++ {
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
	m.Ties = page.ServiceTies(all, service.Name, hops, "", href)
	m.Ties.Hops = nil
	return adminview.Picture(m)
}

func itoaHop(n int) string { return string(rune('0' + n)) }

// orderOf is when the actions of the draft would run in a new cluster of a template.
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
