package catalog

import (
	"net/http"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/route"
)

// adminStarter loads the starter catalog into the tenant.
func (s *Server) adminStarter(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if s.Starter == nil {
		return loom.NewError(loom.NotFound, "There is no starter catalog in this installation.")
	}
	if err := s.Starter(r.Context(), actor); err != nil {
		return err
	}
	return s.Say(w, r, route.Admin(), httpx.Flash{Tone: "ok", Text: "Loaded the starter catalog."})
}
