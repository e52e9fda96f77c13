package web

import (
	"errors"
	"net/http"
	"slices"
	"strconv"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
)

// usesOf says where an entry is used, with the places as people write them.
func (s *Server) usesOf(r *http.Request, actor loom.Actor, kind loom.EntityKind, name string) ([]adminview.Use, error) {
	found, err := s.Catalog.Uses(r.Context(), actor, kind, name)
	if err != nil {
		return nil, err
	}
	var uses []adminview.Use
	for _, u := range found {
		use := adminview.Use{Kind: u.Kind.Word(), Name: u.Name, Field: plainPath(u.Field)}
		if u.Kind == catalog.KindCluster {
			id, _ := loom.ParseClusterID(u.Name)
			use.Href, use.Field = route.Cluster(id), "made from it"
		} else {
			use.Href = route.AdminEntry(u.Kind, u.Name)
		}
		uses = append(uses, use)
	}
	return uses, nil
}

// usersOf names each user once, at however many fields it names the entry.
func usersOf(uses []adminview.Use) []adminview.Use {
	return slices.CompactFunc(uses, func(a, b adminview.Use) bool { return a.Href == b.Href })
}

// maxAffected is how many users the editor names.
const maxAffected = 8

// addAffected tells in the editor what names the entry. Steps that only change a part
// of the form do without.
func (s *Server) addAffected(r *http.Request, actor loom.Actor, m *adminview.EditorModel) error {
	if m.Name == "" || r.Header.Get("HX-Target") != "" {
		return nil
	}
	uses, err := s.usesOf(r, actor, m.Kind, m.Name)
	if errors.Is(err, loom.NotFound) {
		return nil // it was deleted meanwhile; saving will tell
	}
	uses = usersOf(uses)
	m.Affects = uses[:min(len(uses), maxAffected)]
	if more := len(uses) - maxAffected; more > 0 {
		m.AffectsMore = "and " + strconv.Itoa(more) + " more"
	}
	return err
}

// sentence is a finding for a page: what is wrong, and where.
func sentence(f loom.Finding) string { return placed(f.Message, []string{placeWords(f.Field)}) }

// placed adds the places to a message; those without words are left out.
func placed(message string, places []string) string {
	if places = slices.DeleteFunc(slices.Clone(places), func(place string) bool { return place == "" }); len(places) == 0 {
		return message
	}
	return message + " (" + capital(loom.And(places)) + ")"
}
