package clusters

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/route"
	"loom/views/ui"
)

// previewApply executes exactly what a preview showed.
func (s *Server) previewApply(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	id := loom.PreviewID(r.PathValue("preview"))
	p, err := s.Clusters.PreviewByID(r.Context(), actor, id)
	if errors.Is(err, loom.NotFound) {
		return s.previewGone(w, r, actor)
	}
	if err != nil {
		return err
	}
	if heavy(p) && p.AppliedAt.IsZero() && strings.TrimSpace(v.Get("confirm")) != p.Name {
		m := s.previewModel(r, p)
		m.ConfirmError = wrongName(p.Name)
		m.Errors = ui.NewFormErrors("Nothing was started.", []loom.FieldError{{Field: "confirm", Message: m.ConfirmError}})
		return s.showPreview(w, r, actor, http.StatusUnprocessableEntity, m)
	}
	ref, err := s.Clusters.Apply(r.Context(), actor, clusters.ApplyInput{ID: id, Hash: v.Get("hash"), ProviderFields: givenFields(v)})
	if err != nil {
		return s.applyRefused(w, r, actor, p, v, err)
	}
	if p.Kind == loom.ChangeCreate {
		if err := s.Accounts.DropDraft(r.Context(), actor, createDraft); err != nil {
			return err
		}
	}
	return s.Return(w, r, route.Cluster(ref.Cluster), begun(p.Kind, p.Name, ref))
}

func wrongName(name string) string { return "Type the name of the cluster exactly: " + name }

// givenFields are the provider fields of a form.
func givenFields(v url.Values) map[string]any {
	given := map[string]any{}
	for name := range v {
		if field, ok := strings.CutPrefix(name, fieldPrefix); ok && v.Get(name) != "" {
			given[field] = v.Get(name)
		}
	}
	return given
}

// applyRefused says on the page of a preview why it was not applied: of the fresh
// one where the world moved, else of the one at hand.
func (s *Server) applyRefused(w http.ResponseWriter, r *http.Request, actor loom.Actor, p clusters.PreviewView, v url.Values, err error) error {
	e := loom.AsError(err)
	switch e.Kind {
	case loom.Conflict, loom.Invalid, loom.Exhausted, loom.Unsolvable:
	case loom.NotFound:
		return s.previewGone(w, r, actor)
	default:
		return err
	}
	if e.Preview != "" {
		fresh, err := s.Clusters.PreviewByID(r.Context(), actor, e.Preview)
		if err != nil {
			return err
		}
		m := s.previewModel(r, fresh)
		m.Banner = ui.BannerModel{Tone: ui.ToneWarn, Text: e.Message + " This is the new preview.", Action: "Its own address", ActionHref: route.Preview(fresh.ID)}
		m.Moved, m.Stale = previewMoved(p, fresh), true
		return s.showPreview(w, r, actor, http.StatusConflict, m)
	}
	// It may just have been applied in another window.
	if again, err := s.Clusters.PreviewByID(r.Context(), actor, p.ID); err == nil {
		p = again
	}
	m := s.previewModel(r, p)
	if p.AppliedAt.IsZero() || e.Kind != loom.Conflict {
		m.Banner = ui.BannerModel{Tone: ui.ToneBad, Text: e.Message}
		if err := s.waitFirst(r.Context(), actor, p, &m.Banner); err != nil {
			return err
		}
	}
	if len(e.Fields) > 0 {
		m.Errors = formErrors(e.Fields)
		m.Errors.Title = "Nothing was started."
		for i := range m.Fields {
			m.Fields[i].Error = m.Errors.For(m.Fields[i].Name)
			if m.Fields[i].Kind != ui.FieldPassword {
				m.Fields[i].Value = v.Get(m.Fields[i].Name)
			}
		}
	}
	return s.showPreview(w, r, actor, httpx.PageStatus(e.Kind), m)
}

// waitFirst adds the remedy to a refusal where another operation has the cluster.
func (s *Server) waitFirst(ctx context.Context, actor loom.Actor, p clusters.PreviewView, b *ui.BannerModel) error {
	if p.Kind == loom.ChangeCreate {
		return nil
	}
	c, err := s.Clusters.Cluster(ctx, actor, p.Cluster)
	if err != nil || c.Status != loom.ClusterPending || c.LatestOperation == 0 {
		return err
	}
	b.Text += " When it has ended, apply this again: what it changed is taken in first, and shown."
	b.Action, b.ActionHref = "See it, or abort it", route.Operation(loom.OperationRef{Cluster: p.Cluster, Number: c.LatestOperation})
	return nil
}

func (s *Server) previewDiscard(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id := loom.PreviewID(r.PathValue("preview"))
	p, err := s.Clusters.PreviewByID(r.Context(), actor, id)
	if errors.Is(err, loom.NotFound) {
		return s.previewGone(w, r, actor)
	}
	if err != nil {
		return err
	}
	if !p.AppliedAt.IsZero() {
		m := s.previewModel(r, p)
		return s.showPreview(w, r, actor, http.StatusConflict, m)
	}
	if err := s.Clusters.Discard(r.Context(), actor, id); err != nil {
		return err
	}
	back := route.Clusters()
	if p.Kind != loom.ChangeCreate {
		back = route.Cluster(p.Cluster)
	}
	return s.Say(w, r, back, httpx.Flash{Tone: "ok", Text: "Discarded the preview of " + p.Name + ". Nothing was changed."})
}

// previewAgain leads from the address of an applied preview, which a reload or a
// bookmark asks for, back to its page.
func (s *Server) previewAgain(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	return httpx.SeeOther(w, r, route.Preview(loom.PreviewID(r.PathValue("preview"))))
}
