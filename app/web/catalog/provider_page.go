package catalog

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// addProvider adds what the page of a provider has besides those of other entries: settings
// as its form has them, how its last test went, and what is to be done next.
func (s *Server) addProvider(r *http.Request, actor loom.Actor, entry loom.Entry, m *adminview.EntryModel) error {
	p, is := entry.(*loom.Provider)
	if !is {
		return nil
	}
	types, err := s.Catalog.PluginTypes(r.Context(), actor, loom.KindProviderType)
	if err != nil {
		return err
	}
	sealed, err := s.Catalog.SealedFields(r.Context(), actor, p.Name)
	if err != nil {
		return err
	}
	v := settingsView{p: p, set: map[string]ui.Def{}}
	if i := slices.IndexFunc(types, func(t loom.PluginType) bool { return t.Name == p.Type }); i >= 0 {
		v.plugin = types[i]
	}
	v.fields, _ = loom.MaskSecrets(p.Fields).(map[string]any)
	for _, name := range p.Sealed {
		stamp := sealed[name]
		v.set[name] = ui.Def{Value: adminview.SealedValue(stamp.Time, string(stamp.By), s.Now())}
	}
	m.Sections = append(v.sections(), m.Sections...)
	return nil
}

// addNext adds the test of a stored provider and what is to be done next.
func (s *Server) addNext(r *http.Request, actor loom.Actor, entry loom.Entry, m *adminview.EntryModel) error {
	p, is := entry.(*loom.Provider)
	if !is {
		return nil
	}
	c, err := s.lastConnection(r, actor, p.Name, m.Updated)
	if err != nil {
		return err
	}
	m.Connection, m.TestAction = &c, route.AdminProbe(p.Name)
	users, err := s.Catalog.Uses(r.Context(), actor, loom.KindProvider, p.Name)
	if err != nil {
		return err
	}
	mapped := map[loom.EntityKind]bool{}
	for _, u := range users {
		mapped[u.Kind] = true
	}
	var lacks []string
	for _, kind := range []loom.EntityKind{loom.KindHardwareType, loom.KindImageType} {
		if !mapped[kind] {
			lacks = append(lacks, "no "+kind.Word())
		}
	}
	if len(lacks) > 0 {
		m.NextText = page.Capital(loom.Or(lacks)) + " uses this provider yet, so it can't make machines."
		m.NextLabel, m.NextHref = "Map sizes and images", route.AdminProbe(p.Name)
	}
	return nil
}

// lastConnection is the test of a provider saved at a time that runs, or the last one.
func (s *Server) lastConnection(r *http.Request, actor loom.Actor, name string, saved time.Time) (adminview.ConnectionModel, error) {
	last, err := s.Processes.LastProbe(r.Context(), actor, name)
	if err != nil && !errors.Is(err, loom.NotFound) {
		return adminview.ConnectionModel{}, err
	}
	tested := err == nil
	open, testing, err := s.Processes.OpenProbe(r.Context(), actor, name)
	switch {
	case err != nil:
		return adminview.ConnectionModel{}, err
	case testing:
		c := s.connection(open)
		c.Before, c.Poll = stepsOf(last.Answer), pollOf(c.ID, "")
		return c, nil
	case tested:
		return s.storedConnection(last, saved), nil
	}
	return adminview.ConnectionModel{State: notTested, Now: s.Now(), Note: "Not tested yet.", Tone: ui.ToneIdle}, nil
}

// settingsView shows the settings of a provider under the headings and labels of its form.
type settingsView struct {
	p      *loom.Provider
	plugin loom.PluginType
	// fields are the plain values, those that look secret masked; set are the sealed ones.
	fields map[string]any
	set    map[string]ui.Def
}

func (v settingsView) sections() []adminview.Section {
	group := v.plugin.Parameters["admin"]
	var sections []adminview.Section
	for _, s := range group.Sections() {
		used := group.MethodOf(s, v.given)
		section := adminview.Section{ID: "settings-" + strings.ToLower(strings.ReplaceAll(s.Title, " ", "-")), Title: s.Title}
		if used != "" {
			section.Note = used
		}
		for _, name := range s.Names {
			f := group.Fields[name]
			if f.IsMethod() || f.Method != "" && f.Method != used {
				continue
			}
			if def, shown := v.fact(name, f, s.Title == loom.SectionAdvanced); shown {
				section.Facts = append(section.Facts, def)
			}
		}
		if len(section.Facts) > 0 || used != "" {
			sections = append(sections, section)
		}
	}
	if others := v.others(group); len(others.Facts) > 0 {
		sections = append(sections, others)
	}
	return sections
}

func (v settingsView) given(name string) bool {
	if _, sealed := v.set[name]; sealed {
		return true
	}
	if v.plugin.Parameters["admin"].Fields[name].Type == "checkbox" {
		return loom.SwitchedOn(v.p.Fields[name])
	}
	return loom.FieldText(v.p.Fields[name]) != ""
}

// fact is a setting with its value, or with the default that is in force. Those that only
// matter when they differ are left out where they do not.
func (v settingsView) fact(name string, f loom.FieldSchema, onlyOther bool) (def ui.Def, shown bool) {
	if sealed, is := v.set[name]; is {
		sealed.Term = f.Label
		return sealed, true
	}
	text, usual := loom.FieldText(v.fields[name]), loom.FieldText(f.Default)
	if f.Type == "checkbox" {
		value := v.fields[name]
		if text == "" {
			value = f.Default
		}
		text, usual = onOff(value), onOff(f.Default)
	}
	same := text == "" || text == usual
	if onlyOther && same {
		return ui.Def{}, false
	}
	def = ui.Def{Term: f.Label, Text: text}
	if text == "" && usual != "" {
		def.Text = usual
	}
	if def.Text == "" {
		def.Text = "–"
	}
	if f.Override && !slices.Contains(v.p.Fixed, name) {
		def.Value = adminview.SettingValue(def.Text)
	}
	return def, true
}

func onOff(value any) string {
	if loom.SwitchedOn(value) {
		return "on"
	}
	return "off"
}

// others are values that the type does not know, by their names.
func (v settingsView) others(group loom.FieldGroup) adminview.Section {
	section := adminview.Section{ID: "settings-other", Title: "Other settings"}
	for _, name := range slices.Sorted(maps.Keys(v.fields)) {
		if _, known := group.Fields[name]; !known {
			section.Facts = append(section.Facts, ui.Def{Term: name, Text: plainText(v.fields[name])})
		}
	}
	for _, name := range v.p.Sealed {
		if _, known := group.Fields[name]; !known {
			def := v.set[name]
			def.Term = name
			section.Facts = append(section.Facts, def)
		}
	}
	return section
}

// plainText is a value as it was typed, or JSON.
func plainText(value any) string {
	if text, is := value.(string); is {
		return text
	}
	return page.CompactJSON(value)
}
