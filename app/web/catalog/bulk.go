package catalog

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// maxBulk is how many entries are taken at once.
const maxBulk = 200

// Verbs of actions on several entries, and the fields of their forms.
const (
	bulkExport    = "export"
	bulkLabel     = "label"
	bulkProvider  = "provider"
	bulkDeprecate = "deprecate"
	bulkDelete    = "delete"

	fieldAdd    = "add"
	fieldRemove = "remove"
)

// mapped are the kinds that name providers.
var mapped = []loom.EntityKind{loom.KindHardwareType, loom.KindImageType, loom.KindTemplate}

// bulkButtons are what can be done to several entries of a kind.
func bulkButtons(kind loom.EntityKind) []ui.ButtonModel {
	button := func(verb, label, icon string, style ui.ButtonKind) ui.ButtonModel {
		return ui.ButtonModel{Label: label, Icon: icon, Kind: style, Small: true, Submit: true, FormAction: route.AdminBulk(kind, verb)}
	}
	buttons := []ui.ButtonModel{button(bulkLabel, "Label", "edit", ui.Secondary), button(bulkExport, "Export", "download", ui.Secondary)}
	if slices.Contains(mapped, kind) {
		buttons = append(buttons, button(bulkProvider, "Replace provider", "cloud", ui.Secondary))
	}
	return append(buttons, button(bulkDeprecate, "Deprecate", "ban", ui.Secondary), button(bulkDelete, "Delete", "trash", ui.Danger))
}

// bulkRoutes are the pages about several entries of a kind.
func (s *Server) bulkRoutes(kind loom.EntityKind) []page.Route {
	at := func(verb string) (string, string) {
		path := route.AdminBulk(kind, verb)
		return path, path + "?id=1.{" + string(kind) + "}"
	}
	export, exportSample := at(bulkExport)
	label, labelSample := at(bulkLabel)
	deprecate, deprecateSample := at(bulkDeprecate)
	remove, removeSample := at(bulkDelete)
	routes := []page.Route{
		page.Piece(export, loom.Publish, s.bulkExport(kind), exportSample),
		page.Get(label, loom.Publish, s.bulkAsk(kind, s.labelPage), labelSample), page.Post(label, loom.Publish, s.bulkLabel(kind)),
		page.Get(deprecate, loom.Publish, s.bulkAsk(kind, s.deprecatePage), deprecateSample), page.Post(deprecate, loom.Publish, s.bulkDeprecate(kind)),
		page.Get(remove, loom.Publish, s.bulkAsk(kind, s.deletePage), removeSample), page.Post(remove, loom.Publish, s.bulkDelete(kind)),
	}
	if slices.Contains(mapped, kind) {
		provider, providerSample := at(bulkProvider)
		routes = append(routes, page.Get(provider, loom.Publish, s.bulkProvider(kind), providerSample))
	}
	return routes
}

// chosen are the entries that something is to be done to.
type chosen struct {
	kind  loom.EntityKind
	items []catalog.Item
	more  bool
	back  string
	errs  ui.FormErrors
	form  url.Values
}

// readChosen reads which entries were selected: those with the keys, or with all=1 what matches
// the filters. What changed since it was shown is in changed.
func (s *Server) readChosen(r *http.Request, actor loom.Actor, kind loom.EntityKind, v url.Values) (c chosen, changed []sharedview.DoneRow, err error) {
	q := readListQuery(kind, v)
	c = chosen{kind: kind, back: q.with(), form: v}
	if back := v.Get("back"); back != "" {
		c.back = route.Local(back, route.AdminKind(kind))
	}
	in := q.input(maxBulk)
	in.Page, in.Counted = loom.Page{Limit: maxBulk, Sort: sortName}, false
	shown := map[string]string{}
	if v.Get("all") == "" {
		in = catalog.ListInput{Page: in.Page, Names: []string{}}
		for _, key := range v["id"] {
			if version, name, ok := strings.Cut(key, "."); ok && shown[name] == "" {
				shown[name], in.Names = version, append(in.Names, name)
			}
		}
	}
	list, err := s.Catalog.Entries(r.Context(), actor, kind, in)
	if err != nil {
		return c, nil, err
	}
	c.more = list.Next != ""
	for _, item := range list.Items {
		name := item.Entry.Meta().Name
		if version := shown[name]; version != "" && version != strconv.Itoa(item.Version) {
			changed = append(changed, sharedview.DoneRow{Name: name, Href: route.AdminEntry(kind, name), Text: "It has changed since it was shown, so nothing was done to it."})
			continue
		}
		c.items = append(c.items, item)
	}
	return c, changed, nil
}

// model is a page about the entries; each row says what is done to one, or why nothing is.
func (c chosen) model(verb, title, intro string) sharedview.BulkModel {
	m := sharedview.BulkModel{Noun: c.kind.Word(), Action: route.AdminBulk(c.kind, verb), Title: title, Intro: intro, Back: c.back, Errors: c.errs,
		Columns: []ui.Column{{Label: page.Capital(c.kind.Word())}, {Label: "Version"}, {Label: "Labels"}}}
	if c.more {
		m.Warning = fmt.Sprintf("More than %d are selected. These are the first %d by name. Repeat this for the others.", maxBulk, maxBulk)
	}
	if len(c.items) == 0 {
		m.Nothing = "Nothing is selected. Tick some rows in the list first."
	}
	for _, item := range c.items {
		meta := item.Entry.Meta()
		m.Rows = append(m.Rows, sharedview.BulkRow{Key: strconv.Itoa(item.Version) + "." + meta.Name, Name: meta.Name, Href: route.AdminEntry(c.kind, meta.Name),
			State: ui.State{Word: ui.Version(item.Version), Icon: "layers", Tone: ui.ToneIdle}, Cells: []string{loom.And(loom.LabelTexts(meta.Labels))}})
	}
	return m
}

// versions are the entries with the versions that were shown.
func (c chosen) versions() map[string]int {
	versions := map[string]int{}
	for _, item := range c.items {
		versions[item.Entry.Meta().Name] = item.Version
	}
	return versions
}

func (s *Server) bulkAsk(kind loom.EntityKind, show func(r *http.Request, actor loom.Actor, c chosen) (sharedview.BulkModel, error)) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		c, _, err := s.readChosen(r, actor, kind, r.URL.Query())
		if err != nil {
			return err
		}
		return s.bulkPage(w, r, actor, http.StatusOK, c, show)
	}
}

func (s *Server) bulkPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, c chosen, show func(r *http.Request, actor loom.Actor, c chosen) (sharedview.BulkModel, error)) error {
	m, err := show(r, actor, c)
	if err != nil {
		return err
	}
	return s.Render(w, r, actor, status, entryFrame(c.kind, "", m.Title), sharedview.BulkPage(m))
}

// bulkAct reads a form about several entries, does what it says and tells the results; what is
// refused as a whole shows the form again.
func (s *Server) bulkAct(w http.ResponseWriter, r *http.Request, actor loom.Actor, kind loom.EntityKind, title string, show func(r *http.Request, actor loom.Actor, c chosen) (sharedview.BulkModel, error),
	act func(c chosen) ([]sharedview.DoneRow, error)) error {
	v, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	c, changed, err := s.readChosen(r, actor, kind, v)
	if err != nil {
		return err
	}
	rows, err := act(c)
	if errs, status, refused := page.FormErrors(err, "Nothing was changed."); err != nil && refused {
		c.errs = errs
		return s.bulkPage(w, r, actor, status, c, show)
	}
	if err != nil {
		return err
	}
	done := len(slices.DeleteFunc(slices.Clone(rows), func(r sharedview.DoneRow) bool { return !r.OK }))
	rows = append(rows, changed...)
	m := sharedview.DoneModel{Noun: kind.Word(), Title: title, Back: c.back, Rows: rows,
		Summary: ui.BannerModel{Tone: ui.ToneOK, Text: "Done: " + ui.Count(done, kind.Word(), kind.Word()+"s") + "."}}
	if failed := len(rows) - done; failed > 0 {
		m.Summary.Tone = ui.ToneWarn
		m.Summary.Text += " Not done: " + strconv.Itoa(failed) + "."
	}
	return s.Render(w, r, actor, http.StatusOK, entryFrame(kind, "", title), sharedview.BulkDonePage(m))
}

// bulkExport is the entries as a bundle.
func (s *Server) bulkExport(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		c, _, err := s.readChosen(r, actor, kind, r.URL.Query())
		if err != nil {
			return err
		}
		var names []catalog.EntryName
		for _, item := range c.items {
			names = append(names, catalog.EntryName{Kind: kind, Name: item.Entry.Meta().Name})
		}
		if len(names) == 0 {
			return s.Say(w, r, c.back, httpx.Flash{Tone: "warn", Text: "Nothing is selected. Tick some rows in the list first."})
		}
		return s.sendBundle(w, r, actor, names, string(kind))
	}
}

func (s *Server) labelPage(_ *http.Request, _ loom.Actor, c chosen) (sharedview.BulkModel, error) {
	m := c.model(bulkLabel, "Label "+adminview.Plural(c.kind), "Each entry that changes gets a new version.")
	m.Fields = []ui.FieldModel{
		{Name: fieldAdd, Label: "Labels to add", Kind: ui.FieldTextarea, Rows: 2, Mono: true, Optional: true, Value: c.form.Get(fieldAdd), Error: c.errs.For("labels"), Help: "One key=value on a line."},
		{Name: fieldRemove, Label: "Labels to remove", Mono: true, Optional: true, Width: "m", Value: c.form.Get(fieldRemove), Help: "Their keys, separated by commas."},
	}
	m.Button = ui.ButtonModel{Label: "Save labels", Busy: "Saving…", Kind: ui.Primary, Submit: true}
	return m, nil
}

func (s *Server) bulkLabel(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		return s.bulkAct(w, r, actor, kind, "Label "+adminview.Plural(kind), s.labelPage, func(c chosen) ([]sharedview.DoneRow, error) {
			labels, errs := loom.ReadLabels(c.form.Get(fieldAdd))
			keys := strings.FieldsFunc(c.form.Get(fieldRemove), func(r rune) bool { return r == ',' || r == ' ' })
			if len(labels)+len(keys)+len(errs) == 0 {
				errs = []loom.FieldError{{Field: "labels", Message: "Enter labels to add or to remove."}}
			}
			if err := loom.InvalidFields(errs); err != nil {
				return nil, err
			}
			return s.amend(r, actor, c, catalog.AmendInput{Label: labels, Unlabel: keys}, "Labeled.")
		})
	}
}

// amend changes the entries as one, and says of each whether it changed.
func (s *Server) amend(r *http.Request, actor loom.Actor, c chosen, in catalog.AmendInput, said string) ([]sharedview.DoneRow, error) {
	in.Entries = c.versions()
	changed, err := s.Catalog.Amend(r.Context(), actor, c.kind, in)
	if err != nil {
		return nil, err
	}
	var rows []sharedview.DoneRow
	for _, item := range c.items {
		row := sharedview.DoneRow{Name: item.Entry.Meta().Name, Href: route.AdminEntry(c.kind, item.Entry.Meta().Name), OK: true, Text: said}
		if !slices.Contains(changed, row.Name) {
			row.Text = "Nothing to change."
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (s *Server) deprecatePage(_ *http.Request, _ loom.Actor, c chosen) (sharedview.BulkModel, error) {
	m := c.model(bulkDeprecate, "Deprecate "+adminview.Plural(c.kind), "They are hidden from pickers. Entries that use them keep working.")
	m.Button = ui.ButtonModel{Label: "Deprecate " + ui.Count(len(c.items), c.kind.Word(), c.kind.Word()+"s"), Busy: "Saving…", Kind: ui.Primary, Submit: true}
	return m, nil
}

func (s *Server) bulkDeprecate(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		return s.bulkAct(w, r, actor, kind, "Deprecate "+adminview.Plural(kind), s.deprecatePage, func(c chosen) ([]sharedview.DoneRow, error) {
			deprecated := true
			return s.amend(r, actor, c, catalog.AmendInput{Deprecated: &deprecated}, "Deprecated.")
		})
	}
}

func (s *Server) deletePage(r *http.Request, actor loom.Actor, c chosen) (sharedview.BulkModel, error) {
	m := c.model(bulkDelete, "Delete "+adminview.Plural(c.kind), "Deletes all versions. The last one can be restored from the list of deleted entries.")
	doable := 0
	for i := range m.Rows {
		row := &m.Rows[i]
		why, err := s.whyStays(r, actor, c.kind, row.Name)
		if err != nil {
			return m, err
		}
		if row.WhyNot = why; why != "" {
			row.Key = ""
			continue
		}
		doable++
	}
	if doable > 0 {
		m.Confirm = "delete " + ui.Count(doable, c.kind.Word(), c.kind.Word()+"s")
		m.Fields = []ui.FieldModel{{Name: "confirm", Label: "Type “" + m.Confirm + "” to confirm", Value: c.form.Get("confirm"), Error: c.errs.For("confirm"), Autocomplete: "off", Width: "m"}}
		m.Button = ui.ButtonModel{Label: page.Capital(m.Confirm), Busy: "Deleting…", Kind: ui.DangerFilled, Submit: true, Attrs: map[string]any{"data-confirm": true}}
	}
	return m, nil
}

// whyStays says why an entry cannot be deleted, "" if it can.
func (s *Server) whyStays(r *http.Request, actor loom.Actor, kind loom.EntityKind, name string) (string, error) {
	uses, err := s.usesOf(r, actor, kind, name)
	if err != nil {
		return "", err
	}
	by := needing(usersOf(uses))
	if len(by) == 0 {
		return "", nil
	}
	return page.Capital(loom.And(by[:min(len(by), maxAffected)])) + " " + nameIt(len(by)) + ".", nil
}

func (s *Server) bulkDelete(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		return s.bulkAct(w, r, actor, kind, "Delete "+adminview.Plural(kind), s.deletePage, func(c chosen) ([]sharedview.DoneRow, error) {
			if typed := strings.TrimSpace(c.form.Get("confirm")); typed != "delete "+ui.Count(len(c.form["id"]), kind.Word(), kind.Word()+"s") {
				return nil, loom.InvalidFields([]loom.FieldError{{Field: "confirm", Message: "Type the text exactly."}})
			}
			var rows []sharedview.DoneRow
			for _, item := range c.items {
				name := item.Entry.Meta().Name
				row := sharedview.DoneRow{Name: name, Href: route.AdminEntry(kind, name), OK: true, Text: "Deleted."}
				err := s.deleteEntry(r, actor, kind, name)
				if err != nil && !errors.Is(err, loom.Conflict) {
					return nil, err
				}
				if err != nil {
					row.OK, row.Text = false, loom.AsError(err).Message
				}
				rows = append(rows, row)
			}
			return rows, nil
		})
	}
}

// bulkProvider asks which provider the entries shall name instead of which; the page of fixes
// shows what that changes.
func (s *Server) bulkProvider(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		c, _, err := s.readChosen(r, actor, kind, r.URL.Query())
		if err != nil {
			return err
		}
		m := adminview.ReplaceModel{Back: c.back}
		from := ui.FieldModel{Name: adminview.FieldValue, Label: "Provider to replace", Kind: ui.FieldSelect, Width: "m", Options: []ui.Option{{Label: "Choose"}}}
		var names []string
		for _, item := range c.items {
			m.Entries = append(m.Entries, string(kind)+"/"+item.Entry.Meta().Name)
			for _, ref := range loom.References(item.Entry) {
				if ref.Kind == loom.KindProvider && !slices.Contains(names, ref.Name) {
					names = append(names, ref.Name)
				}
			}
		}
		slices.Sort(names)
		for _, name := range names {
			from.Options = append(from.Options, ui.Option{Value: name, Label: name, Selected: name == c.form.Get("provider")})
		}
		to := ui.FieldModel{Name: adminview.FieldTo, Label: "Use instead", Kind: ui.FieldSelect, Width: "m", Options: []ui.Option{{Label: "Choose"}}}
		list, err := s.Catalog.Entries(r.Context(), actor, loom.KindProvider, catalog.ListInput{Page: loom.Page{Limit: loom.MaxPageLimit}})
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			name := item.Entry.Meta().Name
			to.Options = append(to.Options, ui.Option{Value: name, Label: name})
		}
		m.Fields = []ui.FieldModel{from, to}
		return s.Confirm(w, r, actor, entryFrame(kind, "", "Replace provider"), adminview.ReplaceForm(m))
	}
}
