package api

import (
	"net/http"

	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/loom"
)

func (a *api) createFleetPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadFleet(body)
	if err != nil {
		return err
	}
	p, err := a.Clusters.FleetPreview(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answerFleet(w, r, p)
}

// fleetOf works out what an import would do to clusters: the change of each entry that it brings.
func (a *api) fleetOf(r *http.Request, actor loom.Actor, report catalog.Report) (clusters.FleetPreview, error) {
	in := clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeUpdate}, Drafts: report.Drafts}
	if len(in.Drafts) == 0 {
		return clusters.FleetPreview{Kind: loom.ChangeUpdate}, nil
	}
	return a.Clusters.FleetPreview(r.Context(), actor, in)
}

func answerFleet(w http.ResponseWriter, r *http.Request, p clusters.FleetPreview) error {
	w.Header().Add("Vary", "Accept")
	if accepted(r, mediaJSON, mediaMarkdown) == mediaMarkdown {
		return answerBytes(w, r, []byte(p.Markdown()), mediaMarkdown, "")
	}
	return answer(w, r, wire.NewFleetPreview(p))
}
