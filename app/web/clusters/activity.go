package clusters

import (
	"net/http"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// clusterActivity is what was done to a cluster and its operations, as far as the
// viewer may know.
func (s *Server) clusterActivity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	in := account.ActivityInput{Cluster: v.ID.String(), Page: s.PageOf(r)}
	in.Page.Sort = ""
	list, err := s.Accounts.Activity(r.Context(), actor, in)
	if err != nil {
		return err
	}
	feed := s.ActivityFeed(ui.ViewerOf(r.Context()), route.ClusterTab(v.ID, "activity"), false, page.ActivityQuery{}, list)
	return s.Render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "Activity"), clusterview.ActivityPage(s.clusterHead(actor, v, "activity"), feed))
}
