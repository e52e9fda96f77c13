package admin

import (
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
	"loom/views/ui"
)

// findingRows says of a group where its findings are: by value where one entry or an upload has
// several, else by entry.
func findingRows(g loom.FindingGroup) []adminview.FindingRow {
	first := g.First()
	byValue := len(g.Values) > 1 && (first.Missing != "" || first.File.Name != "")
	if g.Code == loom.FindingUnchecked {
		return nil
	}
	var rows []adminview.FindingRow
	at, places, entries := map[string]int{}, map[string][]string{}, map[string][]string{}
	for _, f := range g.Findings {
		key := string(f.Kind) + "/" + f.Name + "/" + f.Message
		if byValue {
			key = f.Value
		}
		if _, there := at[key]; !there {
			at[key] = len(rows)
			rows = append(rows, findingRow(f, byValue))
		}
		if entry := f.Kind.Word() + " " + f.Name; !slices.Contains(entries[key], entry) {
			entries[key] = append(entries[key], entry)
		}
		places[key] = append(places[key], page.PlaceWords(f.Field))
	}
	for key, i := range at {
		if byValue {
			rows[i].Text = loom.And(entries[key])
		} else if first.Missing != "" || g.OneMessage() { // the title says it
			rows[i].Text = loom.And(places[key])
		} else {
			rows[i].Text = page.Placed(rows[i].Text, places[key])
		}
	}
	return rows
}

func findingRow(f loom.Finding, byValue bool) adminview.FindingRow {
	switch {
	case byValue && f.File.Name != "":
		return adminview.FindingRow{Name: f.File.Name, Href: adminview.FileNew(f.File)}
	case byValue:
		one := loom.FindingGroup{Code: f.Code, Values: []string{f.Value}, Findings: []loom.Finding{f}}
		row := adminview.FindingRow{Name: f.Value, Href: route.AdminEntry(f.Kind, f.Name), Links: []adminview.LostLink{{Label: "Create", Href: adminview.NewNamed(f.Missing, f.Value)}}}
		if slices.Contains(f.Fixes(), loom.FixReplace) {
			row.Links = append(row.Links, adminview.LostLink{Label: "Use another…", Href: adminview.Fix(one, loom.FixReplace)})
		}
		return row
	}
	return adminview.FindingRow{Name: page.Capital(f.Kind.Word()) + " " + f.Name, Href: route.AdminEntry(f.Kind, f.Name), Text: f.Message,
		Links: []adminview.LostLink{{Label: "Edit", Href: route.AdminEntryEdit(f.Kind, f.Name)}}}
}

// maxFixes is how many changes of a fix a page shows.
const maxFixes = 100

// readFix reads which findings to fix from an address or a form.
func readFix(v url.Values) catalog.FixInput {
	var entries []catalog.EntryName
	for _, entry := range v[adminview.FieldEntry] {
		kind, name, _ := strings.Cut(entry, "/")
		entries = append(entries, catalog.EntryName{Kind: loom.EntityKind(kind), Name: name})
	}
	return catalog.FixInput{Entries: entries, Code: loom.FindingCode(v.Get(adminview.FieldCode)), Values: v[adminview.FieldValue], Missing: loom.EntityKind(v.Get(adminview.FieldKind)),
		Fix: loom.FindingFix(v.Get(adminview.FieldFix)), To: v.Get(adminview.FieldTo), Digest: v.Get(adminview.FieldDigest)}
}

// adminFixAsk shows what a fix changes.
func (s *Server) adminFixAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.showFix(w, r, actor, readFix(r.URL.Query()), nil)
}

// adminFix applies it, or shows it again where the catalog changed since.
func (s *Server) adminFix(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	in := readFix(v)
	fixed, err := s.Catalog.Fix(r.Context(), actor, in)
	if _, _, refused := page.Refused(err); refused {
		return s.showFix(w, r, actor, in, err)
	}
	if err != nil {
		return err
	}
	return s.Return(w, r, route.Admin(), httpx.Flash{Tone: "ok", Text: "Changed " + ui.Count(len(fixed.Entries), "entry", "entries") + "."})
}

// showFix shows a fix as it would be now, with why it was refused.
func (s *Server) showFix(w http.ResponseWriter, r *http.Request, actor loom.Actor, in catalog.FixInput, refused error) error {
	in.DryRun, in.Digest = true, ""
	m, status := adminview.FixModel{}, http.StatusOK
	title := "Remove references to " + loom.And(in.Values)
	if in.Missing == "" {
		title = "Remove " + loom.And(in.Values)
	}
	if in.Fix == loom.FixReplace {
		title = "Use another " + in.Missing.Word()
		field, err := s.replacement(r, actor, in)
		if err != nil {
			return err
		}
		m.Choose = &field
	}
	var fixed catalog.Fixed
	if in.Fix != loom.FixReplace || in.To != "" {
		var err error
		fixed, err = s.Catalog.Fix(r.Context(), actor, in)
		if err != nil && (refused != nil || m.Choose == nil || len(loom.AsError(err).Fields) == 0) {
			return err
		}
		if err != nil {
			refused = err
		}
	}
	if refused != nil {
		errs, code, _ := page.FormErrors(refused, "Nothing was changed.")
		m.Errors, status = errs, code
		if m.Choose != nil {
			m.Choose.Error = errs.For(adminview.FieldTo)
		}
	}
	m.Hidden = []string{adminview.FieldCode, string(in.Code), adminview.FieldKind, string(in.Missing), adminview.FieldFix, string(in.Fix)}
	for _, value := range in.Values {
		m.Hidden = append(m.Hidden, adminview.FieldValue, value)
	}
	for _, e := range in.Entries {
		m.Hidden = append(m.Hidden, adminview.FieldEntry, string(e.Kind)+"/"+e.Name)
	}
	for _, e := range fixed.Entries {
		for _, c := range page.ChangesOf(e.Changes) {
			if c.Object = e.Kind.Word() + " " + e.Name; len(m.Changes) < maxFixes {
				m.Changes = append(m.Changes, c)
			} else {
				m.More++
			}
		}
	}
	n := ui.Count(len(fixed.Entries), "entry", "entries")
	m.Button = "Remove from " + n
	m.Chosen = append(m.Chosen, adminview.FieldDigest, fixed.Digest)
	if in.Fix == loom.FixReplace {
		m.Button = "Replace in " + n
		m.Chosen = append(m.Chosen, adminview.FieldTo, in.To)
	}
	frame := page.AdminFrame(title, route.Admin(), ui.Crumb{Label: "Overview", Href: route.Admin()})
	return s.AnswerConfirm(w, r, actor, status, frame, adminview.FixForm(m))
}

// replacement offers the entries to use instead of one that does not exist.
func (s *Server) replacement(r *http.Request, actor loom.Actor, in catalog.FixInput) (ui.FieldModel, error) {
	field := ui.FieldModel{Name: adminview.FieldTo, Label: "Use instead of " + loom.And(in.Values), Width: "m", Value: in.To}
	list, err := s.Catalog.Entries(r.Context(), actor, in.Missing, catalog.ListInput{Page: loom.Page{Limit: loom.MaxPageLimit}})
	if err != nil {
		return field, err
	}
	if list.Next != "" { // too many to choose from
		field.Mono, field.Autocomplete = true, "off"
		field.Help = "The name of one of " + strconv.Itoa(list.Total) + " entries."
		return field, nil
	}
	field.Kind = ui.FieldSelect
	field.Options = []ui.Option{{Label: "Choose"}}
	for _, item := range list.Items {
		name := item.Entry.Meta().Name
		field.Options = append(field.Options, ui.Option{Value: name, Label: name, Selected: name == in.To})
	}
	return field, nil
}
