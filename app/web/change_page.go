package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// changeLines is how much of a preview a form shows of itself.
const changeLines = 8

// changeShow is the form of a kind, filled in as the query says.
func (s *Server) changeShow(kind loom.PreviewKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		v, err := s.pathCluster(r, actor)
		if err != nil {
			return err
		}
		q := r.URL.Query()
		f := readChangeForm(q)
		f.Kind, f.Service = kind, route.Segment(r.PathValue("service"))
		if _, there := v.Services[f.Service]; f.Service != "" && !there {
			return loom.NewError(loom.NotFound, "Cluster %s has no service “%.40s”.", v.ID, f.Service)
		}
		if kind == loom.PreviewRollback || kind == loom.PreviewRetry {
			if _, err := pathOperation(r); err != nil {
				return err
			}
			f.Operation = r.PathValue("n")
		}
		if nodes := q["node"]; kind == loom.PreviewRepair && len(nodes) > 0 {
			f.Nodes = nodes
		}
		if id := q.Get(previewParam); kind == loom.PreviewConfigure && id != "" {
			if err := s.configureAgain(r.Context(), actor, v, loom.PreviewID(id), &f); err != nil {
				return err
			}
		}
		if nodes := q["leave"]; kind == kindScale && len(nodes) > 0 {
			f.leave(v, nodes)
		}
		return s.showChange(w, r, actor, http.StatusOK, v, f, ui.FormErrors{}, nil)
	}
}

// configureAgain fills in the config that a preview of this cluster was asked for.
func (s *Server) configureAgain(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, id loom.PreviewID, f *changeForm) error {
	p, err := s.Clusters.PreviewByID(ctx, actor, id)
	if err != nil {
		return err
	}
	in := p.Asked.Configure
	if p.Asked.Cluster != v.ID || in == nil {
		return loom.NewError(loom.NotFound, "Preview %.40s is not about the config of this cluster.", id)
	}
	config := in.Config
	if config == nil {
		config = loom.MergePatch(masked(v.Config), in.ConfigPatch)
	}
	f.Config, f.Restart = configText(config), in.Restart
	return nil
}

// changeTry says what the form as it stands would come to.
func (s *Server) changeTry(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	panel, err := s.tryChange(r.Context(), actor, v, readChangeForm(form))
	if err != nil {
		return err
	}
	return s.fragment(w, r, http.StatusOK, templ.Join(clusterview.ChangePanelPart(panel), clusterview.CheckLine(panel.Check.Head, true)))
}

// previewChange makes the preview that a form asks for.
func (s *Server) previewChange(w http.ResponseWriter, r *http.Request, actor loom.Actor, form url.Values) error {
	id, ok := loom.ParseClusterID(form.Get("cluster"))
	if !ok {
		return loom.NewError(loom.NotFound, "There is no cluster “%.40s”.", form.Get("cluster"))
	}
	v, err := s.Clusters.Cluster(r.Context(), actor, id)
	if err != nil {
		return err
	}
	f := readChangeForm(form)
	if f.Change != "" {
		if err := f.apply(v, f.Change); err != nil {
			return err
		}
	}
	if f.Change != "" || f.Do != "" {
		return s.showChange(w, r, actor, http.StatusOK, v, f, ui.FormErrors{}, nil)
	}
	in, errs := f.input(v)
	err = loom.InvalidFields(errs)
	if err == nil {
		var p lifecycle.PreviewView
		if p, err = s.Clusters.Preview(r.Context(), actor, in); err == nil {
			return httpx.SeeOther(w, r, route.Preview(p.ID))
		}
	}
	return s.refuseChange(w, r, actor, v, f, err)
}

// refuseChange shows the form again with what is wrong.
func (s *Server) refuseChange(w http.ResponseWriter, r *http.Request, actor loom.Actor, v lifecycle.ClusterView, f changeForm, err error) error {
	e := loom.AsError(err)
	switch e.Kind {
	case loom.Invalid, loom.Unsolvable, loom.Conflict, loom.Exhausted, loom.Unavailable, loom.NotFound:
	default:
		return err
	}
	if _, known := changePages[f.Kind]; !known {
		return err
	}
	fields := e.Fields
	if len(fields) == 0 {
		fields = []loom.FieldError{{Message: e.Message}}
	}
	status := httpx.PageStatus(e.Kind)
	if e.Kind == loom.NotFound {
		status = http.StatusUnprocessableEntity
	}
	return s.showChange(w, r, actor, status, v, f, formErrors(plainFields(fields)), err)
}

// plainFields leads errors about an entry of a list to the list.
func plainFields(fields []loom.FieldError) []loom.FieldError {
	out := make([]loom.FieldError, len(fields))
	for i, e := range fields {
		e.Field, _, _ = strings.Cut(e.Field, "[")
		out[i] = e
	}
	return out
}

// showChange answers with the form. refused is why there is no preview; without it the
// form is tried.
func (s *Server) showChange(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v lifecycle.ClusterView, f changeForm, errs ui.FormErrors, refused error) error {
	m, err := s.changeModel(r.Context(), actor, v, f, errs)
	if err != nil {
		return err
	}
	switch {
	case m.WhyNot != "":
	case refused != nil:
		m.Panel = refusedPanel(actor, v, f, refused)
		if err := s.scaleWithin(r.Context(), actor, v, f, refused, &m.Panel); err != nil {
			return err
		}
		if m.Panel.Leaving != nil {
			m.Panel.Leaving.Error = errs.For("nodes")
		}
	default:
		if m.Panel, err = s.tryChange(r.Context(), actor, v, f); err != nil {
			return err
		}
	}
	page := clusterPage(m.Title, "Clusters", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: m.Title})
	return s.render(w, r, actor, status, page, clusterview.ChangePage(m))
}

// tryChange asks what the form comes to and words the answer.
func (s *Server) tryChange(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, f changeForm) (clusterview.ChangePanel, error) {
	if text := f.blank(v); text != "" {
		return leavingPart(v, f, nil, clusterview.ChangePanel{Check: clusterview.CheckPanel{Head: ui.CheckModel{State: ui.CheckIncomplete, Headline: text}}}), nil
	}
	in, errs := f.input(v)
	err := loom.InvalidFields(errs)
	if err == nil {
		var p lifecycle.PreviewView
		if p, err = s.Clusters.Try(ctx, actor, in); err == nil {
			return fittingPanel(v, f, p), nil
		}
	}
	switch loom.AsError(err).Kind {
	case loom.Invalid, loom.Unsolvable, loom.Conflict, loom.Exhausted, loom.Unavailable, loom.NotFound, loom.Forbidden:
		m := refusedPanel(actor, v, f, err)
		return m, s.scaleWithin(ctx, actor, v, f, err, &m)
	}
	return clusterview.ChangePanel{}, err
}

// refusedPanel words why a change cannot be made, and what would work.
func refusedPanel(actor loom.Actor, v lifecycle.ClusterView, f changeForm, err error) clusterview.ChangePanel {
	e := loom.AsError(err)
	m := clusterview.ChangePanel{}
	switch {
	case e.Unsat != nil:
		st := &settled{form: createForm{Template: v.Template.Name}}
		bare := *e.Unsat
		bare.Suggestions = nil
		m.Check = cannot(actor, st, &bare)
		for _, su := range e.Unsat.Suggestions {
			if len(su.Template)+len(su.Catalog) > 0 { // nothing that this form could set
				m.Check.Elsewhere = append(m.Check.Elsewhere, su.Label)
				continue
			}
			name, value := changeSuggestion(su)
			m.Check.Suggestions = append(m.Check.Suggestions, ui.Suggestion{Label: su.Label, Name: name, Value: value})
		}
	case errors.Is(err, loom.Invalid) || errors.Is(err, loom.NotFound):
		m.Check.Head = ui.CheckModel{State: ui.CheckIncomplete, Headline: "Something is missing or wrong"}
		for _, item := range ui.NewFormErrors("", plainFields(configFields(e.Fields))).Items {
			if item.FieldID == "" {
				continue
			}
			m.Check.Errors = append(m.Check.Errors, item)
		}
		if len(m.Check.Errors) == 0 {
			m.Check.Head.Headline = strings.TrimSuffix(e.Message, ".")
		}
	case errors.Is(err, loom.Unavailable):
		m.Check.Head = ui.CheckModel{State: ui.CheckUnsure, Headline: "The search took too long", Note: e.Message}
	default:
		m.Check.Head = ui.CheckModel{State: ui.CheckCannot, Headline: "This cannot begin"}
		m.Check.Reasons = []ui.Reason{{Text: e.Message}}
		if errors.Is(err, loom.Exhausted) {
			m.Check.Head.Headline, m.Check.Reasons[0].Origin = "The quota does not allow it", "quota"
		}
	}
	return leavingPart(v, f, nil, m)
}

// fittingPanel is what the preview will say, in short.
func fittingPanel(v lifecycle.ClusterView, f changeForm, p lifecycle.PreviewView) clusterview.ChangePanel {
	m := clusterview.ChangePanel{Check: clusterview.CheckPanel{
		Head: ui.CheckModel{State: ui.CheckFits, Headline: strings.TrimSuffix(p.Summary(), " Changes nothing else.")}, Warnings: p.Warnings,
	}}
	if len(p.Missing) > 0 {
		m.Check.Warnings = append(m.Check.Warnings, "The provider needs "+missingLabels(p.Missing)+" when the preview is applied.")
	}
	if p.Before.Nodes != p.After.Nodes {
		m.Check.Facts = append(m.Check.Facts, ui.Def{Term: "Nodes in use afterwards", Text: usedOf(p.After.Nodes, p.Before.MaxNodes)})
	}
	if p.Kind == loom.PreviewExpand {
		for _, n := range p.Nodes {
			if n.State == loom.NodePlanned && n.Incarnation == 1 {
				m.Coming = append(m.Coming, clusterview.PreviewNode{
					Hostname: shortHost(n.Hostname), Services: strings.Join(n.Services, ", "), Hardware: n.HardwareType, Image: n.ImageType})
			}
		}
	} else if p.Kind != loom.PreviewShrink {
		m.Changes = previewChanges(p)
		m.More = max(0, p.ChangeCount-changeLines)
		m.Changes = m.Changes[:min(len(m.Changes), changeLines)]
	}
	return leavingPart(v, f, &p, m)
}
