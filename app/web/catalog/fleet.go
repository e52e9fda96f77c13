package catalog

import (
	"fmt"
	"net/http"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// adminFleet says what a draft would do to each cluster, as a part of the editor or as a page.
func (s *Server) adminFleet(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		d, err := s.readEditor(w, r, actor, kind, "")
		if err != nil {
			return err
		}
		s.keepDraft(r, actor, d)
		m, err := s.fleetModel(r, actor, d)
		if err != nil {
			return err
		}
		if httpx.IsFragment(r) {
			return s.Fragment(w, r, http.StatusOK, adminview.Fleet(m))
		}
		return s.Sheet(w, r, actor, http.StatusOK, entryFrame(kind, d.name, "Effect on clusters"), adminview.PageModel{
			Title: "Effect on clusters", Parts: []templ.Component{adminview.Fleet(m)},
			Actions: []ui.ButtonModel{{Label: "Back to the editor", Href: route.AdminEntryEdit(kind, d.name)}},
		})
	}
}

func (s *Server) fleetModel(r *http.Request, actor loom.Actor, d draft) (adminview.FleetModel, error) {
	entry, err := readDraft(d.kind, d.body)
	if err != nil || len(d.formErrors()) > 0 {
		if err != nil && loom.AsError(err).Kind != loom.Invalid {
			return adminview.FleetModel{}, err
		}
		return adminview.FleetModel{Failed: "Correct the errors first."}, nil
	}
	p, err := s.Clusters.FleetPreview(r.Context(), actor, clusters.FleetInput{
		Change: clusters.PreviewInput{Kind: loom.ChangeUpdate}, Drafts: []clusters.Draft{{Kind: d.kind, Entry: entry}}})
	if err != nil {
		if e := loom.AsError(err); e.Kind != loom.Internal {
			return adminview.FleetModel{Failed: e.Message}, nil
		}
		return adminview.FleetModel{}, err
	}
	return fleetOf(p), nil
}

// fleetNames is how many clusters of a group are named.
const fleetNames = 50

// fleetOf puts a fleet preview in words.
func fleetOf(p clusters.FleetPreview) adminview.FleetModel {
	if p.Clusters == 0 {
		return adminview.FleetModel{Text: "No clusters"}
	}
	var m adminview.FleetModel
	m.Text = p.Summary()
	if p.Before != nil && *p.Before != *p.After {
		m.Price = fmt.Sprintf("%+.2f an hour", *p.After-*p.Before)
	}
	for _, g := range p.Groups {
		if g.Effect == clusters.EffectUnaffected {
			continue
		}
		group := adminview.FleetGroup{Text: fmt.Sprintf("%d %s", len(g.Members), g.Effect.Word()), Why: g.Why(), Bad: g.Effect == clusters.EffectImpossible,
			More: max(len(g.Members)-fleetNames, 0)}
		for _, c := range g.Members[:min(len(g.Members), fleetNames)] {
			group.Clusters = append(group.Clusters, adminview.FleetCluster{Name: c.Name, Href: route.Cluster(c.ID)})
		}
		m.Groups = append(m.Groups, group)
	}
	return m
}
