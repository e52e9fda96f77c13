package clusters

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// clusterDeleteForm asks for the name to be typed.
func (s *Server) clusterDeleteForm(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	return s.showDelete(w, r, actor, http.StatusOK, v, deleteModel(v))
}

func deleteModel(v clusters.ClusterView) clusterview.DeleteModel {
	m := clusterview.DeleteModel{ID: v.ID, Name: v.Name}
	m.WhyNot, m.AbortFirst = deletable(v)
	services := map[string]bool{}
	for _, n := range v.Nodes {
		if n.State == loom.NodeDeleted {
			continue
		}
		m.Nodes++
		for _, name := range n.Services {
			services[name] = true
		}
	}
	m.Services = loom.And(slices.Sorted(maps.Keys(services)))
	for _, l := range v.Leftovers {
		m.Leftovers = append(m.Leftovers, page.LeftoverText(l))
	}
	return m
}

// deletable says why a cluster cannot be deleted now, and whether its operation has to
// be aborted for that.
func deletable(v clusters.ClusterView) (whyNot string, abortFirst bool) {
	if v.DeleteAborts(v.Latest) {
		return v.WhyNotDeletedIdle(), true
	}
	return v.Allowed[loom.ChangeDelete], false
}

func (s *Server) showDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v clusters.ClusterView, m clusterview.DeleteModel) error {
	if page.Wants(r, page.DialogID) {
		return s.Fragment(w, r, status, clusterview.DeleteDialog(m))
	}
	page := clusterPage("Delete "+v.Name, "Clusters", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Delete"})
	return s.Render(w, r, actor, status, page, clusterview.DeletePage(m))
}

// clusterDelete starts the deletion once the name was typed.
func (s *Server) clusterDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	m := deleteModel(v)
	m.Value = strings.TrimSpace(form.Get("confirm"))
	if m.WhyNot == "" && m.Value != v.Name {
		m.ConfirmError = wrongName(v.Name)
		m.Errors = ui.NewFormErrors("Nothing was deleted.", []loom.FieldError{{Field: "confirm", Message: m.ConfirmError}})
		return s.showDelete(w, r, actor, http.StatusUnprocessableEntity, v, m)
	}
	m.Abandon = form.Get("abandon") != ""
	ref, err := s.Clusters.Delete(r.Context(), actor, v.ID, clusters.DeleteInput{ProviderFields: givenFields(form), Abort: m.AbortFirst, Abandon: m.Abandon})
	e := loom.AsError(err)
	switch {
	case errors.Is(err, loom.Invalid):
		m.Errors = formErrors(e.Fields)
		m.Errors.Title = "Nothing was deleted: " + e.Message
		for _, set := range e.Missing {
			m.Fields = append(m.Fields, providerFields(set, nil, nil, m.Errors)...)
		}
		return s.showDelete(w, r, actor, http.StatusUnprocessableEntity, v, m)
	case errors.Is(err, loom.Conflict):
		m.WhyNot = e.Message
		return s.showDelete(w, r, actor, http.StatusConflict, v, m)
	case err != nil:
		return err
	case m.Abandon:
		return s.Return(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: v.Name + " is terminated. Its leftover machines are in the audit log."})
	case m.AbortFirst && v.Latest != nil && ref == v.Latest.Ref:
		return s.Return(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: "Aborting operation " + strconv.Itoa(ref.Number) + "; " + v.Name + " is deleted when it has ended.", URL: route.Operation(ref), Link: "View the plan"})
	case ref.Number == 0:
		return s.Return(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: v.Name + " was deleted already."})
	}
	return s.Return(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: "Deleting " + v.Name + ".", URL: route.Operation(ref), Link: "View the plan"})
}
