package clusters

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

func (s *Server) clusterEditForm(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	return s.showEdit(w, r, actor, http.StatusOK, v, writtenNow(v), ui.FormErrors{})
}

func (s *Server) showEdit(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v clusters.ClusterView, c clusterWriting, errs ui.FormErrors) error {
	m := clusterview.EditModel{Cluster: v.ID, Name: v.Name, WhyNot: v.Allowed[loom.ChangeEdit], Errors: errs, Inline: page.Wants(r, clusterview.PartAbout.ID()),
		SeenDescription: c.seenDescription, SeenLabels: c.seenLabels, Clash: c.clash, Changes: c.changes,
		Description: ui.FieldModel{Name: clusterview.FieldDescription, Label: "Description", Kind: ui.FieldTextarea, Rows: 3, Optional: true, Value: c.description, Error: errs.For(clusterview.FieldDescription), MaxLength: loom.MaxDescription},
		Labels: ui.FieldModel{Name: clusterview.FieldLabels, Label: "Labels", Kind: ui.FieldTextarea, Rows: max(2, strings.Count(c.labels, "\n")+1), Mono: true, Optional: true, Value: c.labels, Error: errs.For(clusterview.FieldLabels),
			Help: "One in a line, such as team=web. They replace the present ones."}}
	if m.Inline {
		m.Description.Autofocus = errs.Title == "" && c.clash == ""
		return s.Fragment(w, r, status, clusterview.AboutEdit(m))
	}
	page := clusterPage("Edit "+v.Name, "Clusters", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Edit"})
	return s.Render(w, r, actor, status, page, clusterview.EditPage(m))
}

func (s *Server) clusterEdit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	c := readWriting(form)
	in, errs := c.input(v)
	if err = loom.InvalidFields(errs); err == nil && (in.Description != nil || in.Labels != nil) {
		_, err = s.Clusters.Edit(r.Context(), actor, v.ID, in)
	}
	var meanwhile *clusters.EditConflict
	switch {
	case errors.Is(err, loom.Invalid):
		fields := loom.AsError(err).Fields
		for i := range fields {
			fields[i].Field, _, _ = strings.Cut(fields[i].Field, ".")
		}
		shown := formErrors(plainFields(fields))
		shown.Title = "Nothing was saved."
		return s.showEdit(w, r, actor, http.StatusUnprocessableEntity, v, c, shown)
	case errors.As(err, &meanwhile):
		return s.showEdit(w, r, actor, http.StatusConflict, v, c.against(meanwhile.Stored), ui.FormErrors{})
	case errors.Is(err, loom.Conflict):
		v.Allowed[loom.ChangeEdit] = loom.AsError(err).Message
		return s.showEdit(w, r, actor, http.StatusConflict, v, c, ui.FormErrors{})
	case err != nil:
		return err
	}
	said := "Saved description and labels of " + v.Name + "."
	if !page.Wants(r, clusterview.PartAbout.ID()) {
		return s.Return(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: said})
	}
	if v, err = s.pathCluster(r, actor); err != nil {
		return err
	}
	if err := sayInPlace(w, said); err != nil {
		return err
	}
	return s.Fragment(w, r, http.StatusOK, clusterview.AboutPart(v, true))
}

// sayInPlace lets the page that stays say what was done.
func sayInPlace(w http.ResponseWriter, said string) error {
	text, err := json.Marshal(map[string]any{"loom:toast": map[string]string{"text": said}})
	if err != nil {
		return err
	}
	w.Header().Set("HX-Trigger", string(text))
	return nil
}

// clusterProtect switches the protection on, or with ?off= off.
func (s *Server) clusterProtect(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	on := r.URL.Query().Get("off") == ""
	if _, err := s.Clusters.Edit(r.Context(), actor, v.ID, clusters.EditInput{Protected: &on}); err != nil {
		return err
	}
	text := v.Name + " is protected: its nodes cannot be taken away, also not by a shrink, other hardware or the end of its lease."
	if !on {
		text = v.Name + " is no longer protected."
	}
	return s.Return(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: text})
}

// clusterAgain leads from the address of a button back to the cluster.
func (s *Server) clusterAgain(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	id, err := pathCluster(r)
	if err != nil {
		return err
	}
	return httpx.SeeOther(w, r, route.Cluster(id))
}
