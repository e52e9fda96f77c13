package page

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// FleetEffect says what an update that brings entries and files would do to each cluster, or why
// that is not known.
func (s *Shared) FleetEffect(r *http.Request, actor loom.Actor, drafts []clusters.Draft, files bool) (adminview.FleetModel, error) {
	if len(drafts) == 0 && !files {
		return fleetOf(clusters.FleetPreview{}), nil
	}
	p, err := s.Clusters.FleetPreview(r.Context(), actor, clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeUpdate}, Drafts: drafts, Files: files})
	if err != nil {
		return FleetFailed(err)
	}
	return fleetOf(p), nil
}

// FleetFailed says why the effect on clusters is not known. Errors inside of Loom stay errors.
func FleetFailed(err error) (adminview.FleetModel, error) {
	e := loom.AsError(err)
	if e.Kind == loom.Internal {
		return adminview.FleetModel{}, err
	}
	var texts []string
	for _, f := range e.Fields {
		texts = append(texts, f.Message)
	}
	if len(texts) == 0 {
		texts = []string{e.Message}
	}
	return adminview.FleetModel{Failed: strings.Join(texts, " ")}, nil
}

// FleetAnswer answers with the effect on clusters: as a part of the page that asked, or as a page
// that leads back to it.
func (s *Shared) FleetAnswer(w http.ResponseWriter, r *http.Request, actor loom.Actor, page layout.Model, m adminview.FleetModel, back ui.ButtonModel) error {
	if httpx.IsFragment(r) {
		return s.Fragment(w, r, http.StatusOK, adminview.Fleet(m))
	}
	return s.Sheet(w, r, actor, http.StatusOK, page, adminview.PageModel{Title: adminview.FleetTitle, Parts: []templ.Component{adminview.Fleet(m)}, Actions: []ui.ButtonModel{back}})
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
