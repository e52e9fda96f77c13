package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
)

// maxImport is the largest body of an import, in bytes.
const maxImport = 32 << 20

// tellFindings says in the header of a write how much of what was written would
// not work, and where that can be read; bodies of writes stay empty.
func tellFindings(w http.ResponseWriter, kind loom.EntityKind, name string, found []loom.Finding) {
	own := 0
	for _, f := range found {
		if f.Kind == kind && f.Name == name {
			own++
		}
	}
	linkFindings(w, own, "?kind="+url.QueryEscape(string(kind))+"&name="+url.QueryEscape(name))
}

func linkFindings(w http.ResponseWriter, n int, query string) {
	w.Header().Set("Loom-Findings", strconv.Itoa(n))
	if n > 0 {
		w.Header().Add("Link", `</v2/check`+query+`>; rel="describedby"`)
	}
}

func (a *api) check(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	kinds, err := oneOf(r, "kind", loom.TenantKinds)
	if err != nil {
		return err
	}
	severities, err := oneOf(r, "severity", loom.FindingSeverities)
	if err != nil {
		return err
	}
	in := catalog.CheckInput{Kinds: kinds, Names: words(r.URL.Query().Get("name")), Severities: severities}
	found, err := a.Catalog.Check(r.Context(), actor, in)
	if err != nil {
		return err
	}
	place := func(f loom.Finding) string {
		return fmt.Sprintf("%d\x00%s\x00%d\x00%s\x00%s\x00%s\x00%s", slices.Index(loom.TenantKinds, f.Kind), f.Name,
			slices.Index(loom.FindingSeverities, f.Severity), f.Code, f.Field, f.Value, f.Message)
	}
	return answerList(w, r, true, found, wire.NewFinding,
		order[loom.Finding]{"kind", place},
		order[loom.Finding]{"name", func(f loom.Finding) string { return f.Name + "\x00" + place(f) }},
		order[loom.Finding]{"severity", func(f loom.Finding) string {
			return strconv.Itoa(slices.Index(loom.FindingSeverities, f.Severity)) + place(f)
		}})
}

// fix changes all entries with the named findings at once.
func (a *api) fix(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	dryRun, err := queryBool(r, "dryRun")
	if err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadFix(body)
	if err != nil {
		return err
	}
	in.DryRun = dryRun != nil && *dryRun
	fixed, err := a.Catalog.Fix(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewFixed(fixed))
}

func (e entries) uses(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	found, err := e.Catalog.Uses(r.Context(), actor, e.kind, r.PathValue("name"))
	if err != nil {
		return err
	}
	place := func(u catalog.Use) string {
		kind := slices.Index(loom.TenantKinds, u.Kind)
		if kind < 0 {
			kind = len(loom.TenantKinds) // clusters come last
		}
		return fmt.Sprintf("%d\x00%s\x00%s", kind, u.Name, u.Field)
	}
	return answerList(w, r, true, found, wire.NewUse, order[catalog.Use]{"kind", place},
		order[catalog.Use]{"name", func(u catalog.Use) string { return u.Name + "\x00" + place(u) }})
}

func (e entries) compare(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	in := catalog.CompareInput{Kind: e.kind, Name: r.PathValue("name")}
	for name, version := range map[string]*int{"from": &in.From, "to": &in.To} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n <= 0 {
			return loom.InvalidFields([]loom.FieldError{{Field: name, Message: "A version is a whole number above 0."}})
		}
		*version = int(n)
	}
	found, err := e.Catalog.Compare(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewDifferences(found))
}

func (a *api) resolve(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	entry, err := catalog.Decode(loom.KindTemplate, body)
	if err != nil {
		return err
	}
	merged, found, err := a.Catalog.ResolveDraft(r.Context(), actor, entry.(*loom.Template))
	if err != nil {
		return err
	}
	tellFindings(w, loom.KindTemplate, merged.Name, found)
	return answer(w, r, wire.NewTemplate(merged))
}

// export answers the JSON document, or the packed folder where Accept names it.
func (a *api) export(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	bundle, err := a.Catalog.Export(r.Context(), actor)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if accepted(r, mediaJSON, mediaArchive, "application/x-gzip") == mediaJSON {
		body, err := bundle.Document()
		if err != nil {
			return err
		}
		return answerBytes(w, r, body, mediaJSON, "")
	}
	body, err := bundle.Archive()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="catalog.tar.gz"`)
	return answerBytes(w, r, body, mediaArchive, "")
}

// importCatalog takes either form of an export; which one it is, the body says.
func (a *api) importCatalog(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	mode := catalog.Mode(strings.ToLower(r.URL.Query().Get("mode")))
	switch mode {
	case "":
		mode = catalog.Replace
	case catalog.Replace, catalog.Merge:
	default:
		return loom.InvalidFields([]loom.FieldError{{Field: "mode", Message: "The mode is “replace” or “merge”."}})
	}
	dryRun, err := queryBool(r, "dryRun")
	if err != nil {
		return err
	}
	fleet, err := queryBool(r, "fleet")
	if err != nil {
		return err
	}
	dry, all := dryRun != nil && *dryRun, fleet != nil && *fleet
	if all && !dry {
		return loom.InvalidFields([]loom.FieldError{{Field: "fleet", Message: "Only a dry run says what an import does to clusters. Set dryRun=true, or leave fleet out."}})
	}
	httpx.Upload(r)
	body, err := readLimited(w, r, maxImport)
	if err != nil {
		return err
	}
	bundle, err := catalog.ReadBundle(body)
	if err != nil {
		return err
	}
	if dry {
		report, err := a.Catalog.CompareImport(r.Context(), actor, bundle, mode)
		if err != nil {
			return err
		}
		if !all {
			return answer(w, r, wire.NewImportReport(report))
		}
		p, err := a.fleetOf(r, actor, report)
		if err != nil {
			return err
		}
		return answerImportFleet(w, r, report, p)
	}
	report, err := a.Catalog.Import(r.Context(), actor, bundle, mode)
	if err != nil {
		return err
	}
	linkFindings(w, len(report.Findings), "")
	return done(w)
}
