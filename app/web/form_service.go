package web

import (
	"net/http"
	"slices"
	"strings"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/planner/ties"
	"loom/views/adminview"
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
}

// serviceForm is the form of a service: what it is, what it needs, what it does.
func serviceForm(s *Server, r *http.Request, actor loom.Actor, d formDraft) (form.Form, error) {
	e := &serviceEditor{s: s, r: r, actor: actor, name: d.Name, types: map[string]loom.PluginType{}}
	found, err := s.Catalog.Newest(r.Context(), actor, loom.KindService, loom.KindTemplate)
	if err != nil {
		return form.Form{}, err
	}
	e.services, e.templates = servicesIn(found), found[loom.KindTemplate]
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
			e.about(d), e.dependencies(d.Doc), e.actions(), e.links(), e.config(), e.order(),
		},
		Settle: e.settle, Check: e.check,
	}, nil
}

// about is the usual first section, with the icons of the installation to choose from.
func (e *serviceEditor) about(d formDraft) form.Section {
	section := aboutSection(d, "Software that is put on nodes. Templates name it; clusters have it on some or all of their nodes.")
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

// dependencies are the lists of names of a service, each folded up with what it
// holds in its line.
func (e *serviceEditor) dependencies(doc *form.Doc) form.Section {
	choices := e.needChoices()
	at := func(steps ...any) form.Path { return form.At("dependencies").To(steps...) }
	list := func(p form.Path, title, help string, more ...form.Part) form.Part {
		picker := form.Picker{Path: p, Legend: title, Help: help, Filter: "Filter services", Choices: choices,
			Free: "Names that are not in the list", FreeHelp: "Of services that will be stored later; separate several by commas."}
		return form.Fold{Title: title, Key: p.String(), Says: holds(p), Parts: append([]form.Part{picker}, more...)}
	}
	scope := form.Field{Path: at("install", "scope"), Odd: "unknown", Face: ui.FieldModel{Label: "Wait for", Kind: ui.FieldSelect, Optional: true, Width: "l",
		Help:    "For what it requires and uses to install. On the same node is faster, where the others are there too and nodes do not need each other.",
		Options: []ui.Option{{Value: "", Label: "every node with them"}, {Value: "cluster", Label: "every node with them (written out)"}, {Value: "node", Label: "the same node only, where they are on it"}}}}
	if doc.Text(scope.Path) != "cluster" {
		scope.Face.Options = slices.Delete(scope.Face.Options, 1, 2)
	}
	return form.Section{ID: "dependencies", Title: "Dependencies", Help: "Which services must be there, and which come first. Open a line to choose.", Parts: []form.Part{
		list(at("install", "requires"), "Requires to install", "Must be in the cluster; they are installed before this service, and removed after it."),
		list(at("install", "uses"), "Uses to install", "Installed before this service where they are in the cluster; they need not be.", scope),
		list(at("runtime", "requires"), "Requires to run", "Must be in the cluster; they are started before this service, and stopped after it."),
		list(at("runtime", "uses"), "Uses to run", "Started before this service where they are in the cluster; they need not be."),
		e.provides(doc),
		list(at("conflicts"), "Conflicts with", "May not be in the same cluster as this service."),
		list(form.At("follows"), "Follows", "When nodes with a followed service come or go, this service's configure action runs again on all its nodes; it must make the running service read its settings. A load balancer follows its back ends."),
		onShrink(doc),
		pictureOf{e},
	}}
}

// holds says what a list holds, before the fold that it is in is opened.
func holds(p form.Path) func(*form.Doc) string {
	return func(doc *form.Doc) string {
		const most = 4
		names := doc.Texts(p)
		switch n := len(names); {
		case n == 0:
			return ": none"
		case n > most:
			return ": " + strings.Join(names[:most], ", ") + " and " + ui.Count(n-most, "more", "more")
		}
		return ": " + strings.Join(names, ", ")
	}
}

// needChoices are the services and the names that they provide.
func (e *serviceEditor) needChoices() []form.Choice {
	var entries []loom.Entry
	providers := map[string][]string{}
	for _, name := range sortedKeys(e.services) {
		s := e.services[name]
		entries = append(entries, &s)
		for _, also := range s.Dependencies.Provides {
			if _, is := e.services[also]; !is && also != e.name {
				providers[also] = append(providers[also], name)
			}
		}
	}
	choices := without(choicesOf(entries), e.name)
	for _, name := range sortedKeys(providers) {
		choices = append(choices, form.Choice{Value: name, Label: name, Facts: []string{"provided by " + loom.And(providers[name])}})
	}
	return choices
}

// provides offers the names that others ask for and no service has.
func (e *serviceEditor) provides(doc *form.Doc) form.Part {
	p := form.At("dependencies", "provides")
	asked := map[string][]string{}
	for _, t := range ties.Of(e.services).Things {
		if t.Sort == ties.Name || t.Sort == ties.Missing {
			asked[t.Name] = nil
		}
	}
	for _, name := range sortedKeys(e.services) {
		d := e.services[name].Dependencies
		for _, wanted := range slices.Concat(d.Install.Requires, d.Install.Uses, d.Runtime.Requires, d.Runtime.Uses) {
			if by, known := asked[wanted]; known && (len(by) == 0 || by[len(by)-1] != name) {
				asked[wanted] = append(asked[wanted], name)
			}
		}
	}
	var choices []form.Choice
	for _, name := range sortedKeys(asked) {
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
	return form.Fold{Title: "Provides", Key: p.String(), Says: holds(p), Parts: []form.Part{form.Picker{Path: p, Legend: "Provides", Filter: "Filter names", Choices: choices,
		Help: "Other names under which services find this one; any that requires such a name is content with it.",
		Free: "More names", FreeHelp: "Separate several by commas."}}}
}

// onShrink says whether a machine with the service may leave its cluster.
func onShrink(doc *form.Doc) form.Part {
	shrink := form.Field{Path: form.At("shrink"), Odd: "unknown", Face: ui.FieldModel{Label: "When a node leaves the cluster", Kind: ui.FieldSelect, Optional: true, Width: "l",
		Help:    "For services that keep data on their nodes. A drain action, if there is one, runs before stop on a node that leaves.",
		Options: []ui.Option{{Value: "", Label: "it may leave"}, {Value: "allow", Label: "it may leave (written out)"}, {Value: "refuse", Label: "refuse: nodes with this service stay"}}}}
	if doc.Text(shrink.Path) != "allow" {
		shrink.Face.Options = slices.Delete(shrink.Face.Options, 1, 2)
	}
	return shrink
}

// links are published for each machine with the service.
func (e *serviceEditor) links() form.Section {
	return form.Section{ID: "links", Title: "Links", Help: "Shown to users for each node with this service.", Parts: []form.Part{
		form.Rows{Path: form.At("links"), Noun: "Link", New: map[string]any{"url": ""}, Empty: "There are no links.", Row: func(at form.Path) []form.Part {
			return []form.Part{
				form.Field{Path: at.To("url"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Address", Mono: true, Width: "full", Placeholder: "http://%ip.access_v4.self%:8080/", Autocomplete: "off"}},
				form.Field{Path: at.To("label"), Face: ui.FieldModel{Label: "Label", Optional: true, Help: "What users click on; the address without."}},
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

// config is what clusters with the service have in their configuration unless they
// say otherwise.
func (e *serviceEditor) config() form.Section {
	return form.Section{ID: "config", Title: "Default configuration", Parts: []form.Part{
		form.JSON{Path: form.At("defaultConfig"), Label: "Config", Object: true, Rows: 8,
			Help: "A JSON object that clusters with this service start with, unless their template or request says otherwise. Macros such as %host.service.NAME% are allowed in its texts."},
	}}
}
