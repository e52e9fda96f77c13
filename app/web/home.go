package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"loom/app/catalog"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

const (
	// homeItems bounds the cards of each panel of the start page.
	homeItems = 12
	// leaseSoon is when the end of a lease becomes a warning.
	leaseSoon = 48 * time.Hour
)

var (
	liveStatuses      = []loom.ClusterStatus{loom.ClusterPending, loom.ClusterActive, loom.ClusterIncomplete, loom.ClusterInconsistent}
	attentionStatuses = []loom.ClusterStatus{loom.ClusterIncomplete, loom.ClusterInconsistent}
)

func (s *Server) home(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ctx := r.Context()
	m := clusterview.HomeModel{MayMake: actor.IsAdmin()}
	offered := false
	templates, err := s.Catalog.Entries(ctx, actor, loom.KindTemplate, catalog.ListInput{Page: loom.Page{Limit: 1}, Deprecated: &offered})
	if err != nil {
		return err
	}
	m.Templates = len(templates.Items) > 0
	all, err := s.Clusters.Clusters(ctx, actor, lifecycle.ListInput{Page: loom.Page{Limit: 1}})
	if err != nil {
		return err
	}
	if m.First = all.Total == 0; !m.First {
		if err := s.homeFigures(ctx, actor, &m); err != nil {
			return err
		}
	}
	page := layout.Model{Title: "Home", Area: layout.AreaClusters, Here: route.Home(), Topics: []string{route.TopicClusters(), clusterview.TopicTenant}}
	reloading(r, &page, len(m.Running.Items) > 0)
	return s.render(w, r, actor, http.StatusOK, page, clusterview.HomePage(m))
}

func (s *Server) homeRunning(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m, _, err := s.runningItems(r.Context(), actor)
	if err != nil {
		return err
	}
	return s.fragment(w, r, http.StatusOK, clusterview.RunningPanel(m))
}

func (s *Server) homeAttention(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m, _, err := s.attentionItems(r.Context(), actor)
	if err != nil {
		return err
	}
	return s.fragment(w, r, http.StatusOK, clusterview.AttentionPanel(m))
}

func (s *Server) homeFigures(ctx context.Context, actor loom.Actor, m *clusterview.HomeModel) error {
	var pending, attention int
	var err error
	if m.Running, pending, err = s.runningItems(ctx, actor); err != nil {
		return err
	}
	if m.Attention, attention, err = s.attentionItems(ctx, actor); err != nil {
		return err
	}
	alive, err := s.Clusters.Clusters(ctx, actor, lifecycle.ListInput{Page: loom.Page{Limit: 1}, Statuses: liveStatuses})
	if err != nil {
		return err
	}
	quota, err := s.Accounts.Quota(ctx, actor)
	if err != nil {
		return err
	}
	m.Tiles = []ui.TileModel{
		{Number: strconv.Itoa(alive.Total), Label: "live clusters", Href: route.Clusters()},
		{Number: strconv.Itoa(pending), Label: "pending", Href: listURL(listQuery{Status: "pending"})},
		{Number: strconv.Itoa(attention), Label: "need attention", Href: listURL(listQuery{Status: "attention"})},
		{Number: strconv.Itoa(quota.Nodes), Label: "nodes of the tenant", Note: "of " + quotaLimit(quota.MaxNodes), Href: route.Clusters()},
	}
	if attention > 0 {
		m.Tiles[2].Tone = ui.ToneBad
	}
	if quota.MaxNodes > 0 && quota.Nodes >= quota.MaxNodes {
		m.Tiles[3].Tone = ui.ToneWarn
	}
	return nil
}

// quotaLimit writes a quota; what nobody reaches is no limit.
func quotaLimit(n int) string {
	if n >= loom.Unlimited {
		return "no limit"
	}
	return strconv.Itoa(n)
}

func (s *Server) runningItems(ctx context.Context, actor loom.Actor) (clusterview.RunningModel, int, error) {
	var m clusterview.RunningModel
	list, err := s.Clusters.Clusters(ctx, actor, lifecycle.ListInput{Page: loom.Page{Limit: homeItems}, Statuses: []loom.ClusterStatus{loom.ClusterPending}})
	if err != nil {
		return m, 0, err
	}
	for _, c := range list.Items {
		op, err := s.Clusters.Operation(ctx, actor, loom.OperationRef{Cluster: c.ID, Number: c.LatestOperation})
		if err != nil {
			return m, 0, err
		}
		now := op.Tasks[loom.TaskRunning]
		m.Items = append(m.Items, clusterview.RunningItem{
			Cluster: c.Name, Href: route.Cluster(c.ID), Action: capital(op.Action.Verb()), OperationHref: route.Operation(op.Ref),
			State: ui.OperationState(op.Status, op.Aborted), Progress: s.progress(op), Tasks: ui.Count(now, "task running", "tasks running"),
		})
	}
	return m, list.Total, nil
}

func (s *Server) attentionItems(ctx context.Context, actor loom.Actor) (clusterview.AttentionModel, int, error) {
	m := clusterview.AttentionModel{Now: s.now()}
	list, err := s.Clusters.Clusters(ctx, actor, lifecycle.ListInput{Page: loom.Page{Limit: homeItems}, Statuses: attentionStatuses})
	if err != nil {
		return m, 0, err
	}
	for _, c := range list.Items {
		ref := loom.OperationRef{Cluster: c.ID, Number: c.LatestOperation}
		op, err := s.Clusters.Operation(ctx, actor, ref)
		if err != nil {
			return m, 0, err
		}
		cause := op.Message
		if cause == "" {
			cause = fmt.Sprintf("Operation %d (%s) did not succeed.", ref.Number, op.Action.Verb())
		}
		m.Items = append(m.Items, clusterview.AttentionItem{
			Cluster: c.Name, Href: route.Cluster(c.ID), State: ui.ClusterState(c.Status), Cause: cause,
			Action: "View failure", ActionHref: route.Operation(ref),
		})
	}
	ending, err := s.Clusters.Clusters(ctx, actor, lifecycle.ListInput{
		Page: loom.Page{Limit: homeItems, Sort: "expireTime"}, Statuses: []loom.ClusterStatus{loom.ClusterActive}})
	if err != nil {
		return m, 0, err
	}
	total := list.Total
	for _, c := range ending.Items {
		if !s.leaseSoon(c.Expires) {
			continue
		}
		total++
		m.Items = append(m.Items, clusterview.AttentionItem{
			Cluster: c.Name, Href: route.Cluster(c.ID), State: ui.ClusterState(c.Status), Cause: "Its lease ends ", Ends: c.Expires,
			Action: "Open", ActionHref: route.Cluster(c.ID),
		})
	}
	return m, total, nil
}

func (s *Server) leaseSoon(expires time.Time) bool {
	return !expires.IsZero() && expires.Sub(s.now()) < leaseSoon
}
