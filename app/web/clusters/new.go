package clusters

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/ui"
)

// clusterNew is the empty form, or one filled in from ?template=, ?preview=, ?like= or
// all of its fields.
func (s *Server) clusterNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f := formOf(loom.CreateInput{Template: r.URL.Query().Get("template"), LeaseMillis: loom.TemplateLease})
	f.For = ""
	var restored time.Time
	if r.URL.RawQuery == "" {
		if kept, at := s.restoreCreateDraft(r, actor); !at.IsZero() {
			f, restored = kept, at
		}
	}
	if id := r.URL.Query().Get(previewParam); id != "" {
		p, err := s.Clusters.PreviewByID(r.Context(), actor, loom.PreviewID(id))
		if err != nil {
			return err
		}
		f = formOf(p.Input)
	}
	if like := r.URL.Query().Get("like"); like != "" {
		var err error
		if f, err = s.formLike(r, actor, like); err != nil {
			return err
		}
	} else if r.URL.Query().Has("for") {
		f = readCreateForm(r.URL.Query())
	}
	st, err := s.settle(r.Context(), actor, f)
	if err != nil {
		return err
	}
	if st.form.of("clusterTemplate") == "" && len(st.templates) == 1 {
		f.set("clusterTemplate", st.templates[0].Name)
		if st, err = s.settle(r.Context(), actor, f); err != nil {
			return err
		}
	}
	st.restored = restored
	return s.showForm(w, r, actor, http.StatusOK, st, ui.FormErrors{}, nil)
}

// formLike is the form for a cluster as another one is. What was given to its provider
// in secret is not known and comes again.
func (s *Server) formLike(r *http.Request, actor loom.Actor, text string) (createForm, error) {
	id, ok := loom.ParseClusterID(text)
	if !ok {
		return createForm{}, loom.NewError(loom.NotFound, "There is no cluster “%.40s”.", text)
	}
	v, err := s.Clusters.Cluster(r.Context(), actor, id)
	if err != nil {
		return createForm{}, err
	}
	return formOf(likeCluster(v)), nil
}

// clusterForm gives the fields that depend on template and provider anew.
func (s *Server) clusterForm(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	f := readCreateForm(v)
	if f.Change != "" {
		if err := f.apply(f.Change); err != nil {
			return err
		}
	}
	st, err := s.settle(r.Context(), actor, f)
	if err != nil {
		return err
	}
	s.keepCreateDraft(r, actor, st, v)
	m := restModel(st, ui.NewFormErrors("", st.unusable))
	if f.Change == "" {
		// Somebody who changes the provider has the advanced part open.
		m.Open = v.Get("for") == v.Get("clusterTemplate")
	}
	w.Header().Set("HX-Trigger-After-Settle", "loom:recheck")
	return s.Fragment(w, r, http.StatusOK, clusterview.FormRestPart(m))
}

// clusterCheck says whether the form as it stands would work.
func (s *Server) clusterCheck(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	st, err := s.settle(r.Context(), actor, readCreateForm(v))
	if err != nil {
		return err
	}
	s.keepCreateDraft(r, actor, st, v)
	panel, err := s.check(r.Context(), actor, st)
	if err != nil {
		return err
	}
	line := templ.Join(append(st.fieldsAgain(panel), clusterview.CheckLine(panel.Head, true))...)
	if panel.Head.State == ui.CheckIncomplete && len(panel.Errors) > 0 && len(panel.Layout.Groups) == 0 {
		// What is wrong stands above the last answer, which stays.
		w.Header().Set("HX-Retarget", "#"+clusterview.CheckProblemID)
		w.Header().Set("HX-Reswap", "innerHTML")
		return s.Fragment(w, r, http.StatusOK, templ.Join(clusterview.CheckPanelPart(clusterview.CheckPanel{Head: panel.Head, Errors: panel.Errors}), line))
	}
	panel.ConfigDiffers, panel.Link, panel.Public = configDifference(st), formLink(st), s.Origin(r)
	return s.Fragment(w, r, http.StatusOK, templ.Join(clusterview.NewCheckPart(panel), line))
}

// fieldsAgain are name, nodes and settings after a check: all settings where other services are chosen,
// else each with what is wrong with it. A field for a secret keeps what is typed there.
func (st *settled) fieldsAgain(panel clusterview.CheckPanel) []templ.Component {
	f, keys := &st.form, st.fieldKeys()
	errs := ui.FormErrors{Items: panel.Errors}
	if errs.For("numMachines") == "" {
		errs.Items = append(slices.Clone(errs.Items), ui.NewFormErrors("", st.wrongSize()).Items...)
	}
	rest := restModel(st, errs)
	again := []templ.Component{clusterview.FieldPart(rest.Machines, true)}
	if rest.Name.Value != "" { // nobody has come to an empty one yet
		again = append(again, clusterview.FieldPart(rest.Name, true))
	}
	settings, config := st.settingsParts(ui.FormErrors{})
	if shown := f.settings.shown; f.settings.present && !f.settings.asJSON && !slices.Equal(slices.Sorted(slices.Values(shown)), slices.Sorted(slices.Values(st.openKeys()))) {
		return append(again, clusterview.SettingsSection(settings, true), clusterview.ConfigSection(config, true))
	}
	if len(keys) == 0 {
		return again
	}
	errs = reached(errs, settings.Fields)
	settings, _ = st.settingsParts(errs)
	for _, field := range settings.Fields {
		if !field.Secret {
			again = append(again, clusterview.SettingFieldPart(field, true))
		}
	}
	return again
}

// openKeys are the keys of settings whose fields can be filled in.
func (st *settled) openKeys() []string {
	return slices.DeleteFunc(st.fieldKeys(), func(key string) bool {
		_, fixed := st.facts.Template.Fixed(key)
		return fixed
	})
}

// showForm answers with the form. unsat is what a preview was refused with; without
// it the form is checked anew.
func (s *Server) showForm(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, st *settled, errs ui.FormErrors, unsat *loom.Unsat) error {
	var panel clusterview.CheckPanel
	var err error
	if unsat != nil {
		panel = cannot(actor, st, unsat)
	} else if panel, err = s.check(r.Context(), actor, st); err != nil {
		return err
	}
	panel.ConfigDiffers, panel.Link, panel.Public = configDifference(st), formLink(st), s.Origin(r)
	page := clusterPage("New cluster", "Clusters", ui.Crumb{Label: "New cluster"})
	return s.Render(w, r, actor, status, page, clusterview.NewPage(s.formModel(actor, st, errs, panel)))
}

// check asks the solver and words the answer.
func (s *Server) check(ctx context.Context, actor loom.Actor, st *settled) (clusterview.CheckPanel, error) {
	if st.form.of("clusterTemplate") == "" {
		return clusterview.CheckPanel{Head: ui.CheckModel{State: ui.CheckIncomplete, Headline: "Choose a template."}}, nil
	}
	in, errs := st.form.input(st.facts)
	result, err := s.Clusters.Check(ctx, actor, in)
	if err != nil {
		return clusterview.CheckPanel{}, err
	}
	result.Fields = replaceFields(replaceFields(st.wrongSize(), errs), result.Fields)
	result.Fits = result.Fits && len(result.Fields) == 0
	panel := checkPanel(actor, st, result)
	if len(st.wrongSize()) > 0 { // the field says what it takes
		panel.Head.Note, panel.Reasons = "", nil
		panel.Errors = slices.DeleteFunc(panel.Errors, func(e ui.FormError) bool { return e.Field == "numMachines" && panel.Head.State == ui.CheckCannot })
	}
	if len(panel.Facts) > 0 && st.facts != nil {
		panel.Facts = append(panel.Facts, ui.Def{Term: "Lease", Text: s.leaseEcho(ctx, st, in.LeaseMillis)})
	}
	return panel, nil
}

// leaseEcho says what the lease of the form comes to: "7 days, until 2 March 2026, 12:00
// UTC".
func (s *Server) leaseEcho(ctx context.Context, st *settled, millis int64) string {
	if millis == loom.TemplateLease {
		millis = st.facts.Template.Administration.Lease.Initial
	}
	if millis == 0 {
		return "no expiry"
	}
	return loom.Duration(millis) + ", until " + ui.ViewerOf(ctx).Moment(s.Now().Add(time.Duration(millis)*time.Millisecond))
}

// replaceFields puts what cannot even be read in place of what is said about it.
func replaceFields(unread, said []loom.FieldError) []loom.FieldError {
	out := unread
	for _, e := range said {
		known := false
		for _, u := range unread {
			known = known || u.Field == e.Field
		}
		if !known {
			out = append(out, e)
		}
	}
	return out
}

// likeCluster is the request for another cluster like one that is there, or was. Its
// name is to be given anew, and so are secrets; types are those on which all of its
// nodes agree.
func likeCluster(v clusters.ClusterView) loom.CreateInput {
	in := loom.CreateInput{
		Template: v.Template.Name, Description: v.Description, Provider: v.Provider.Name, DNSSuffix: v.DNSSuffix, Labels: v.Labels,
		LeaseMillis: loom.TemplateLease, Config: maskedConfig(v), Services: slices.Sorted(maps.Keys(v.Services)),
	}
	nodes := placedNodes(v)
	if len(nodes) == 0 {
		nodes = v.Nodes // of a cluster that is gone
	}
	in.Machines = len(nodes)
	for i, n := range nodes {
		if i == 0 {
			in.HardwareType, in.ImageType = n.HardwareType, n.ImageType
		}
		if n.HardwareType != in.HardwareType {
			in.HardwareType = ""
		}
		if n.ImageType != in.ImageType {
			in.ImageType = ""
		}
	}
	return in
}
