package web

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"loom/app/httpx"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

func (s *Server) clusterEditForm(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	return s.showEdit(w, r, actor, http.StatusOK, v, v.Description, labelLines(v.Labels), ui.FormErrors{})
}

// labelLines writes labels as readLabels reads them.
func labelLines(all map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, key+"="+all[key])
	}
	return strings.Join(lines, "\n")
}

func (s *Server) showEdit(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v lifecycle.ClusterView, description, labels string, errs ui.FormErrors) error {
	m := clusterview.EditModel{Cluster: v.ID, Name: v.Name, WhyNot: v.Allowed[loom.VerbEdit], Errors: errs,
		Description: ui.FieldModel{Name: "description", Label: "Description", Kind: ui.FieldTextarea, Rows: 3, Optional: true, Value: description, Error: errs.For("description"), MaxLength: loom.MaxDescription},
		Labels: ui.FieldModel{Name: "labels", Label: "Labels", Kind: ui.FieldTextarea, Rows: 4, Mono: true, Optional: true, Value: labels, Error: errs.For("labels"),
			Help: "One in a line, such as team=web. They replace the present ones."}}
	page := clusterPage("Edit "+v.Name, "Clusters", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Edit"})
	return s.render(w, r, actor, status, page, clusterview.EditPage(m))
}

// readLabels reads key=value lines.
func readLabels(text string) (map[string]string, []loom.FieldError) {
	labels := map[string]string{}
	var errs []loom.FieldError
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		_, twice := labels[key]
		switch {
		case !found || key == "":
			errs = append(errs, loom.FieldError{Field: "labels", Message: fmt.Sprintf("Line %d is “%.40s”; write key=value.", i+1, line)})
		case twice:
			errs = append(errs, loom.FieldError{Field: "labels", Message: fmt.Sprintf("Line %d: the label “%.40s” is there twice.", i+1, key)})
		default:
			labels[key] = strings.TrimSpace(value)
		}
	}
	return labels, errs
}

func (s *Server) clusterEdit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	description := strings.ReplaceAll(strings.TrimSpace(form.Get("description")), "\r\n", "\n")
	text := strings.ReplaceAll(form.Get("labels"), "\r\n", "\n")
	labels, errs := readLabels(text)
	err = loom.InvalidFields(errs)
	if err == nil {
		_, err = s.Clusters.Edit(r.Context(), actor, v.ID, lifecycle.EditInput{Description: &description, Labels: labels})
	}
	switch {
	case errors.Is(err, loom.Invalid):
		fields := loom.AsError(err).Fields
		for i := range fields {
			fields[i].Field, _, _ = strings.Cut(fields[i].Field, ".")
		}
		shown := formErrors(plainFields(fields))
		shown.Title = "Nothing was saved."
		return s.showEdit(w, r, actor, http.StatusUnprocessableEntity, v, description, text, shown)
	case errors.Is(err, loom.Conflict):
		v.Allowed[loom.VerbEdit] = loom.AsError(err).Message
		return s.showEdit(w, r, actor, http.StatusConflict, v, description, text, ui.FormErrors{})
	case err != nil:
		return err
	}
	return s.say(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: "Saved description and labels of " + v.Name + "."})
}

// clusterProtect switches the protection on, or with ?off= off.
func (s *Server) clusterProtect(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	on := r.URL.Query().Get("off") == ""
	if _, err := s.Clusters.Edit(r.Context(), actor, v.ID, lifecycle.EditInput{Protected: &on}); err != nil {
		return err
	}
	text := v.Name + " is protected: its machines cannot be taken away, also not by a shrink, other hardware or the end of its lease."
	if !on {
		text = v.Name + " is not protected any more."
	}
	return s.say(w, r, route.Cluster(v.ID), httpx.Flash{Tone: "ok", Text: text})
}

// clusterAgain leads from the address of a button back to the cluster.
func (s *Server) clusterAgain(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	id, err := pathCluster(r)
	if err != nil {
		return err
	}
	return httpx.SeeOther(w, r, route.Cluster(id))
}
