package catalog

import (
	"fmt"
	"net/http"
	"strconv"

	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// maxVersions is how many versions of a service have a bar; older ones share one.
const maxVersions = 6

// addVersions adds to the page of a service how many clusters have each version of it: the
// newest, and those that some have.
func (s *Server) addVersions(r *http.Request, actor loom.Actor, entry loom.Entry, m *adminview.EntryModel) error {
	if m.Kind != loom.KindService {
		return nil
	}
	infos, err := s.Catalog.Versions(r.Context(), actor, loom.KindService, entry.Meta().Name)
	if err != nil {
		return err
	}
	all, older := 0, 0
	for _, v := range infos {
		all += v.Clusters
	}
	m.InUse = &adminview.InUseModel{None: all == 0}
	add := func(label string, n int, href string) {
		if n == 0 {
			href = ""
		}
		m.InUse.Bars = append(m.InUse.Bars, adminview.SharesModel{Label: label, Used: n, Max: all, Parts: []string{ui.Count(n, "cluster", "clusters")}, Href: href})
	}
	for i, v := range infos {
		switch {
		case i > 0 && v.Clusters == 0:
		case len(m.InUse.Bars) < maxVersions:
			add("v"+strconv.Itoa(v.Version), v.Clusters, clustersOn(m.Name, v.Version))
		default:
			older += v.Clusters
		}
	}
	if older > 0 {
		add("Older", older, "")
	}
	return nil
}

// clustersOn is the list of clusters on a version of an entry.
func clustersOn(name string, version int) string {
	return route.Query(route.Clusters(), "q", fmt.Sprintf("uses:%s@%d", name, version))
}
