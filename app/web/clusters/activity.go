package clusters

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/route"
	"loom/views/ui"
)

// historyEvents bounds the events beside operations in the history of a cluster.
const historyEvents = 50

// clusterEvents is what happened to a cluster besides its operations, as far as the viewer may
// know; nil for nothing.
func (s *Server) clusterEvents(ctx context.Context, actor loom.Actor, v clusters.ClusterView) (templ.Component, error) {
	list, err := s.Accounts.Activity(ctx, actor, account.ActivityInput{Cluster: v.ID.String(), Page: loom.Page{Limit: historyEvents}, ActivityFilter: account.ActivityFilter{NoOperations: true}})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	list.Next, list.Prev = "", ""
	return s.ActivityFeed(ui.ViewerOf(ctx), actor, "", false, page.ActivityQuery{}, list), nil
}

// clusterActivity leads to the history, which has all events.
func (s *Server) clusterActivity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	return httpx.SeeOther(w, r, route.ClusterOperations(v.ID))
}
