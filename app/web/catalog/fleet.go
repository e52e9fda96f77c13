package catalog

import (
	"net/http"

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
		return s.FleetAnswer(w, r, actor, entryFrame(kind, d.name, adminview.FleetTitle), m, ui.ButtonModel{Label: "Back to the editor", Href: route.AdminEntryEdit(kind, d.name)})
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
	return s.FleetEffect(r, actor, []clusters.Draft{{Kind: d.kind, Entry: entry}}, false)
}
