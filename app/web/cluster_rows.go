package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// clusterRows gives the rows of a page of the list as they are now, in the order
// in which they were shown: nothing moves under the pointer. What came new is
// counted and offered.
func (s *Server) clusterRows(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := readListQuery(r.URL.Query())
	list, err := s.Clusters.Clusters(r.Context(), actor, q.input())
	if err != nil {
		return err
	}
	now := map[loom.ClusterID]loom.ClusterSummary{}
	for _, c := range list.Items {
		now[c.ID] = c
	}
	m := s.listTable(actor, q, list)
	m.Rows = nil
	var ids []string
	for _, text := range strings.Split(r.URL.Query().Get("ids"), ",") {
		id, ok := loom.ParseClusterID(text)
		if !ok || len(ids) >= listRows {
			continue
		}
		c, shown := now[id]
		if !shown {
			// It left the filter while it was looked at: it stays until the next load.
			view, err := s.Clusters.Cluster(r.Context(), actor, id)
			if errors.Is(err, loom.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			c = summary(view.Cluster, len(view.Nodes), view.Latest)
		}
		delete(now, id)
		ids = append(ids, id.String())
		m.Rows = append(m.Rows, s.listRow(c))
	}
	total, err := strconv.Atoi(r.URL.Query().Get("total"))
	if err == nil && list.Total > total && q.After == "" && q.Before == "" {
		m.Fresh, m.FreshHref = list.Total-total, listURL(q)
	}
	m.Live = rowsURL(q, ids, total)
	return s.fragment(w, r, http.StatusOK, clusterview.ListRows(m))
}

func summary(c loom.Cluster, nodes int, latest *loom.Operation) loom.ClusterSummary {
	out := loom.ClusterSummary{
		ID: c.ID, Name: c.Name, Description: c.Description, Owner: c.Owner, Status: c.Status, Created: c.Created, Expires: c.Expires,
		Nodes: nodes, Provider: c.Provider.Base, Template: c.Template.Base, LatestOperation: c.LatestOperation,
	}
	if latest != nil {
		out.Progress = latest.Progress()
	}
	return out
}

func (s *Server) listRow(c loom.ClusterSummary) clusterview.Row {
	row := clusterview.Row{
		ID: c.ID.String(), Name: c.Name, Href: route.Cluster(c.ID), Description: c.Description, State: ui.ClusterState(c.Status),
		Template: c.Template.Name, Nodes: strconv.Itoa(c.Nodes), Owner: string(c.Owner.User), Created: c.Created, Expires: c.Expires,
		LeaseSoon: c.Status != loom.ClusterTerminated && (c.LeaseSoon || s.leaseSoon(c.Expires)), Deleted: c.DeletedAt,
		Menu: []ui.MenuItem{{Label: "Open", Href: route.Cluster(c.ID)}},
	}
	if c.LatestOperation > 0 {
		row.LastHref = route.Operation(loom.OperationRef{Cluster: c.ID, Number: c.LatestOperation})
		row.Last = c.Progress.Action.Verb()
	}
	if c.Status == loom.ClusterPending {
		p := c.Progress
		row.Progress = &ui.ProgressModel{
			Label: "Progress of " + p.Action.Verb() + " of " + c.Name, Value: p.Done, Max: p.Total,
			Text: strconv.Itoa(p.Done) + " of " + strconv.Itoa(p.Total),
		}
	}
	// Protection is not in a summary; the confirmation tells of it.
	if (&loom.Cluster{Status: c.Status}).WhyNot(loom.VerbDelete, nil) == "" {
		row.Menu = append(row.Menu, ui.MenuItem{Label: "Delete", Icon: "trash", Href: route.ClusterDelete(c.ID), Danger: true, Attrs: ui.OpensDialog(route.ClusterDelete(c.ID))})
	}
	return row
}
