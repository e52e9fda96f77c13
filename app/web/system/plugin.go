package system

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// ofPlugin reads the plugin type of the path, with its versions, the newest first.
func (s *Server) ofPlugin(r *http.Request, actor loom.Actor) (*loom.PluginType, loom.EntityKind, []loom.VersionInfo, error) {
	kind, name := loom.EntityKind(r.PathValue("kind")), r.PathValue("name")
	if kind != loom.KindProviderType && kind != loom.KindAutomatorType {
		return nil, kind, nil, loom.NewError(loom.NotFound, "There is no page %.100s.", r.URL.Path)
	}
	entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, name, 0)
	if err != nil {
		return nil, kind, nil, err
	}
	t, ok := entry.(*loom.PluginType)
	if !ok {
		return nil, kind, nil, loom.NewError(loom.NotFound, "There is no %s “%.60s”.", kind.Word(), name)
	}
	versions, err := s.Catalog.Versions(r.Context(), actor, kind, name)
	return t, kind, versions, err
}

func pluginFrame(title string, crumbs ...ui.Crumb) layout.Model {
	return page.SystemFrame(title, route.SystemPlugins(), append([]ui.Crumb{{Label: "Plugin types", Href: route.SystemPlugins()}}, crumbs...)...)
}

// systemPlugin shows a plugin type: the forms that are made from it, the files it
// takes, its versions.
func (s *Server) systemPlugin(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, kind, versions, err := s.ofPlugin(r, actor)
	if err != nil {
		return err
	}
	m := adminview.PageModel{Title: t.Name, Intro: t.Description, Calls: []ui.JSONCall{page.Call("read", http.MethodGet, "/v2/plugins/"+string(kind)+"/"+t.Name, "")}}
	for _, who := range []struct{ group, title string }{{"admin", "Form for administrators"}, {"user", "Form for users"}} {
		if g := t.Parameters[who.group]; len(g.Fields) > 0 {
			m.Parts = append(m.Parts, adminview.Card(who.group+"-title", who.title, pluginForm(who.group, g)...))
		}
	}
	files := adminview.TableModel{ID: "files", Caption: "Files it takes", ShowCaption: true, Columns: []ui.Column{{Label: "Resource type"}, {Label: "Format"}, {Label: "Permissions"}},
		Empty: ui.EmptyModel{Icon: "file", Text: "It takes no files."}}
	for _, name := range page.SortedKeys(t.ResourceTypes) {
		files.Rows = append(files.Rows, []adminview.Cell{{Text: name, Mono: true}, {Text: t.ResourceTypes[name].Format}, {Text: t.ResourceTypes[name].Permissions, Mono: true}})
	}
	past := adminview.TableModel{ID: "versions", Caption: "Versions", ShowCaption: true, Now: s.Now(), Columns: []ui.Column{{Label: "Version"}, {Label: "Registered"}, {Label: "By"}, {Label: "Actions", LabelHidden: true}}}
	for i, v := range versions {
		row := []adminview.Cell{{Text: strconv.Itoa(v.Version)}, {Time: v.Time}, {Text: string(v.Author)}, {}}
		if i == 0 {
			row[0].Sub = "in use"
		} else {
			row[3].Buttons = []ui.ButtonModel{page.Opening("Remove", fmt.Sprintf("Remove version %d of %s", v.Version, t.Name), pluginRemove(kind, t.Name, v.Version), ui.Danger)}
		}
		past.Rows = append(past.Rows, row)
	}
	m.Parts = append(m.Parts, adminview.Table(files), adminview.Table(past))
	return s.Sheet(w, r, actor, http.StatusOK, pluginFrame(t.Name, ui.Crumb{Label: t.Name}), m)
}

// pluginForm previews the form that is made from a group of fields; nothing is sent.
func pluginForm(group string, g loom.FieldGroup) []templ.Component {
	parts := []templ.Component{adminview.Text(requiredText(g.Required))}
	for _, name := range page.SortedKeys(g.Fields) {
		f := g.Fields[name]
		m := ui.FieldModel{Name: group + "-" + name, Label: f.Label, Help: f.Tip, Optional: true}
		if m.Label == "" {
			m.Label = name
		}
		if f.Extra {
			m.Help = strings.TrimSpace(m.Help + " A client added this field; the plugin does not read it.")
		}
		if f.Default != nil {
			m.Value = fmt.Sprint(f.Default)
		}
		switch {
		case f.IsSensitive():
			m.Kind, m.Value = ui.FieldPassword, ""
			m.Autocomplete = "off"
		case f.Type == "select":
			m.Kind = ui.FieldSelect
			pairs := []string{"", "–"}
			for _, o := range f.Options {
				pairs = append(pairs, o, o)
			}
			m.Options = page.Options(m.Value, pairs...)
		case f.Type == "checkbox":
			m.Kind, m.Checked = ui.FieldCheckbox, m.Value == "true"
		case f.Type == "textarea" || f.Type == "multiline":
			m.Kind = ui.FieldTextarea
		}
		parts = append(parts, ui.Field(m))
	}
	return parts
}

// requiredText says which sets of fields must be complete.
func requiredText(sets [][]string) string {
	var texts []string
	for _, set := range sets {
		if len(set) > 0 {
			texts = append(texts, loom.And(set))
		}
	}
	switch len(texts) {
	case 0:
		return "A preview of the form; no field is required."
	case 1:
		return "A preview of the form; required: " + texts[0] + "."
	}
	return "A preview of the form; one of these must be complete: " + strings.Join(texts, "; or ") + "."
}

func pluginRemove(kind loom.EntityKind, name string, version int) string {
	return route.SystemPlugin(string(kind), name) + "/versions/" + strconv.Itoa(version) + "/remove"
}

// oldVersion reads the version of the path, which must not be the one in use.
func oldVersion(r *http.Request, t *loom.PluginType, versions []loom.VersionInfo) (int, error) {
	n, err := page.PathNumber(r, "version", "version")
	if err != nil {
		return 0, err
	}
	for i, v := range versions {
		if v.Version == int(n) && i == 0 {
			return 0, loom.NewError(loom.Conflict, "Version %d of %s is the one in use; it goes when a provisioner registers a newer one.", n, t.Name)
		}
		if v.Version == int(n) {
			return v.Version, nil
		}
	}
	return 0, loom.NewError(loom.NotFound, "There is no version %d of %s.", n, t.Name)
}

func (s *Server) systemPluginAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, kind, versions, err := s.ofPlugin(r, actor)
	if err != nil {
		return err
	}
	version, err := oldVersion(r, t, versions)
	if err != nil {
		return err
	}
	button := "Remove version " + strconv.Itoa(version) + " of " + t.Name
	back := route.SystemPlugin(string(kind), t.Name)
	m := adminview.ConfirmModel{Action: r.URL.Path, Button: button, Busy: "Removing…", Cancel: back, Lines: []string{"Nothing uses it: providers and services go by the newest version. It cannot be brought back."}}
	return s.Confirm(w, r, actor, pluginFrame(button, ui.Crumb{Label: t.Name, Href: back}, ui.Crumb{Label: "Remove"}), adminview.Confirm(m))
}

func (s *Server) systemPluginRemove(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, kind, versions, err := s.ofPlugin(r, actor)
	if err != nil {
		return err
	}
	version, err := oldVersion(r, t, versions)
	if err != nil {
		return err
	}
	if err := s.Catalog.Delete(r.Context(), actor, kind, t.Name, version); err != nil {
		return err
	}
	return s.Say(w, r, route.SystemPlugin(string(kind), t.Name), httpx.Flash{Tone: "ok", Text: "Removed version " + strconv.Itoa(version) + " of " + t.Name + "."})
}
