package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/lifecycle"
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
	rows := s.pageRows(r)
	list, err := s.Clusters.Clusters(r.Context(), actor, q.input(rows))
	if err != nil {
		return err
	}
	shown := readIDs(strings.Split(r.URL.Query().Get("ids"), ","), loom.RowChoices[len(loom.RowChoices)-1])
	now, err := s.summaries(r.Context(), actor, shown)
	if err != nil {
		return err
	}
	m := s.listTable(actor, q, list, rows)
	m.Rows = nil
	var ids []string
	for _, id := range shown {
		// What left the filter while it was looked at stays until the next load.
		if c, there := now[id]; there {
			ids = append(ids, id.String())
			m.Rows = append(m.Rows, s.listRow(c))
		}
	}
	total, err := strconv.Atoi(r.URL.Query().Get("total"))
	if err == nil && list.Total > total && q.After == "" && q.Before == "" {
		m.Fresh, m.FreshHref = list.Total-total, listURL(q)
	}
	m.Live = rowsURL(q, ids, total)
	return s.fragment(w, r, http.StatusOK, clusterview.ListRows(m))
}

// readIDs reads ids of clusters, each once, as far as most; what is none is left out.
func readIDs(texts []string, most int) []loom.ClusterID {
	var ids []loom.ClusterID
	for _, text := range texts {
		if id, ok := loom.ParseClusterID(text); ok && len(ids) < most && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// summaries reads those of the clusters that the actor may see, in one query.
func (s *Server) summaries(ctx context.Context, actor loom.Actor, ids []loom.ClusterID) (map[loom.ClusterID]loom.ClusterSummary, error) {
	found := map[loom.ClusterID]loom.ClusterSummary{}
	if len(ids) == 0 {
		return found, nil
	}
	list, err := s.Clusters.Clusters(ctx, actor, lifecycle.ListInput{Page: loom.Page{Limit: len(ids)}, IDs: ids, Uncounted: true})
	for _, c := range list.Items {
		found[c.ID] = c
	}
	return found, err
}

func (s *Server) listRow(c loom.ClusterSummary) clusterview.Row {
	row := clusterview.Row{
		ID: c.ID.String(), Name: c.Name, Href: route.Cluster(c.ID), Description: c.Description, State: ui.ClusterState(c.Status),
		Template: c.Template.Name, Nodes: strconv.Itoa(c.Nodes), Owner: string(c.Owner.User), Created: c.Created, Expires: c.Expires, Ended: c.Ended,
		NewerTemplate: newer(c), Protected: c.Protected,
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
	lease := route.ClusterLease(c.ID)
	if c.WhyNot(loom.VerbLease) == "" {
		row.Menu = append(row.Menu, ui.MenuItem{Label: "Change the lease", Icon: "clock", Href: lease, Attrs: ui.OpensDialog(lease)})
	}
	row.Menu = append(row.Menu, ui.MenuItem{Label: "Duplicate", Icon: "copy", Href: route.ClusterNewLike(c.ID)})
	if why := c.WhyNot(loom.VerbDelete); why == "" || c.Protected {
		row.Menu = append(row.Menu, ui.MenuItem{Label: "Delete", Icon: "trash", Href: route.ClusterDelete(c.ID), Danger: true, WhyNot: why, Divider: true, Attrs: ui.OpensDialog(route.ClusterDelete(c.ID))})
	}
	return row
}

// newer is the version of the template that is out, 0 unless it is newer than the
// cluster's copy.
func newer(c loom.ClusterSummary) int {
	if c.Status == loom.ClusterTerminated || c.NewestTemplate <= c.Template.Version {
		return 0
	}
	return c.NewestTemplate
}
