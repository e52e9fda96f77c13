package web

import (
	"net/http"
	"slices"
	"strings"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
)

// addLacks says what of a stored entry would not work, each once with the places where
// it is, and with what helps.
func (s *Server) addLacks(r *http.Request, actor loom.Actor, entry loom.Entry, m *adminview.EntryModel) error {
	found, err := s.Catalog.CheckEntry(r.Context(), actor, m.Kind, entry)
	if err != nil {
		return err
	}
	service, _ := entry.(*loom.Service)
	for _, f := range merged(found) {
		lack := adminview.LostService{Text: f.text()}
		ref, isFile := loom.ResourceRef{}, false
		if service != nil {
			ref, isFile = catalog.MissedFile(service, f.Finding)
		}
		switch {
		case isFile:
			lack.Text = "The " + catalog.FileWord(ref.Type) + " " + ref.Name + " is neither active nor staged; " + loom.And(actionsAt(f.places)) + " " + nameIt(len(f.places)) + "."
			lack.Links = append(lack.Links, adminview.LostLink{Label: "Write or upload it", Href: uploadOf(ref)})
		case f.Kind != m.Kind || f.Name != m.Name:
			lack.Links = append(lack.Links, adminview.LostLink{Label: "Edit the " + f.Kind.Word() + " " + f.Name, Href: route.AdminEntryEdit(f.Kind, f.Name)})
		}
		m.Lacks = append(m.Lacks, lack)
	}
	return nil
}

// actionsAt are the actions of places such as "start action".
func actionsAt(places []string) []string {
	names := make([]string, len(places))
	for i, place := range places {
		names[i], _, _ = strings.Cut(place, " ")
	}
	return names
}

func nameIt(n int) string {
	if n == 1 {
		return "names it"
	}
	return "name it"
}

// told is a finding with all places of its entry that have the same.
type told struct {
	loom.Finding
	places []string
}

func (t told) text() string {
	return placed(t.Message, t.places)
}

// merged puts findings that say the same of an entry into one.
func merged(found []loom.Finding) []told {
	var all []told
	for _, f := range found {
		at := slices.IndexFunc(all, func(t told) bool { return t.Kind == f.Kind && t.Name == f.Name && t.Message == f.Message })
		if at < 0 {
			all, at = append(all, told{Finding: f}), len(all)
		}
		if place := placeWords(f.Field); place != "" {
			all[at].places = append(all[at].places, place)
		}
	}
	return all
}
