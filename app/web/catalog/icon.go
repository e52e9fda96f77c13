package catalog

import (
	"net/http"
	"strconv"

	"loom/app/loom"
)

// iconPolicy keeps a picture that somebody opens by its address from doing anything.
const iconPolicy = "default-src 'none'; sandbox"

// entryIcon serves the picture that a version of an entry brings as its icon. A version never
// changes.
func (s *Server) entryIcon(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	none := loom.NewError(loom.NotFound, "There is no such icon.")
	kind := loom.EntityKind(r.PathValue("kind"))
	version, err := strconv.Atoi(r.PathValue("version"))
	if err != nil || version < 1 || kind != loom.KindTemplate && kind != loom.KindService && kind != loom.KindProvider {
		return none
	}
	entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), version)
	if err != nil {
		return err
	}
	mediaType, picture, own := entry.Meta().OwnIcon()
	if !own {
		return none
	}
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Security-Policy", iconPolicy)
	h.Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(picture) // that the browser went away changes nothing
	return nil
}
