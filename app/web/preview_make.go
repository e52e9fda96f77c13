package web

import (
	"net/http"
	"net/url"
	"slices"

	"loom/app/httpx"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/route"
	"loom/views/ui"
)

// previewMake works out what a form asks for and goes to the page that shows it.
// The buttons of a form that only change it come here as well, so that they work
// without scripts.
func (s *Server) previewMake(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := readForm(w, r)
	if err != nil {
		return err
	}
	kind := loom.PreviewKind(v.Get("kind"))
	if kind == loom.PreviewCreate || kind == "" {
		return s.previewCreate(w, r, actor, v)
	}
	return s.previewChange(w, r, actor, v)
}

func (s *Server) previewCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor, v url.Values) error {
	f := readCreateForm(v)
	if f.Change != "" {
		if err := f.apply(f.Change); err != nil {
			return err
		}
	}
	if f.Do == resetConfig {
		f.Config = ""
	}
	st, err := s.settle(r.Context(), actor, f)
	if err != nil {
		return err
	}
	if f.Do == saveDraft {
		s.keepCreateDraft(r, actor, st, v)
		return s.say(w, r, route.Clusters(), httpx.Flash{Tone: "ok", Text: "The draft is kept for 7 days; secrets in it are not.", Link: "Go on with it", URL: route.ClusterNew()})
	}
	if f.Change != "" || f.Do != "" {
		return s.showForm(w, r, actor, http.StatusOK, st, ui.FormErrors{}, nil)
	}
	in, errs := st.form.input(st.facts)
	if len(errs) > 0 {
		// Said together with what else is wrong, so that nobody corrects in rounds.
		result, err := s.Clusters.Check(r.Context(), actor, in)
		if err != nil {
			return err
		}
		return s.refuseForm(w, r, actor, st, &loom.Error{Kind: loom.Invalid, Fields: replaceFields(errs, result.Fields)})
	}
	p, err := s.Clusters.Preview(r.Context(), actor, lifecycle.PreviewInput{Kind: loom.PreviewCreate, Create: in})
	if err != nil {
		return s.refuseForm(w, r, actor, st, err)
	}
	return httpx.SeeOther(w, r, route.Preview(p.ID))
}

// refuseForm shows the form again with what is wrong, as far as that can be put
// right there.
func (s *Server) refuseForm(w http.ResponseWriter, r *http.Request, actor loom.Actor, st *settled, err error) error {
	e := loom.AsError(err)
	fields := e.Fields
	switch e.Kind {
	case loom.Invalid, loom.Unsolvable:
	case loom.NotFound:
		if len(fields) == 0 {
			return err
		}
	case loom.Exhausted, loom.Unavailable:
	default:
		return err
	}
	if len(fields) == 0 {
		fields = []loom.FieldError{{Message: e.Message}}
	}
	status := httpx.PageStatus(e.Kind)
	if e.Kind == loom.NotFound {
		status = http.StatusUnprocessableEntity
	}
	return s.showForm(w, r, actor, status, st, formErrors(fields), e.Unsat)
}

// fieldLabels are the names of the form's fields for people.
var fieldLabels = map[string]string{
	"clusterTemplate": "Template", "name": "Name", "numMachines": "Number of nodes", "description": "Description", "provider": "Provider",
	"hardwaretype": "Hardware type", "imagetype": "Image type", "services": "Services", "initialLeaseDuration": "Lease",
	"dnsSuffix": "DNS suffix", "onFailure": "If the operation fails", "config": "Config", "nodes": "Nodes", "skip": "Tasks to leave out",
	"reason": "Reason", "batch": "Nodes at a time", "minHealthy": "Nodes that stay up",
}

// fieldOrder is the order of the fields in the form.
var fieldOrder = []string{
	"clusterTemplate", "name", "numMachines", "description", "provider", "hardwaretype", "imagetype", "services",
	"initialLeaseDuration", "dnsSuffix", "nodes", "skip", "reason", "batch", "minHealthy", "onFailure", "config",
}

// formErrors is the summary above the form.
func formErrors(fields []loom.FieldError) ui.FormErrors {
	errs := ui.NewFormErrors("There is no preview yet.", configFields(fields))
	for i := range errs.Items {
		errs.Items[i].Label = fieldLabels[errs.Items[i].Field]
	}
	place := func(e ui.FormError) int { return slices.Index(fieldOrder, e.Field) }
	slices.SortStableFunc(errs.Items, func(a, b ui.FormError) int { return place(a) - place(b) })
	return errs
}
