package clusters

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

func (s *Server) clusterServices(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathHistory(r, actor)
	if err != nil {
		return err
	}
	known, err := s.Services(r.Context(), actor)
	if err != nil {
		return err
	}
	page := templ.Join(clusterview.ServicesPage(s.clusterHead(actor, v, "services"), s.servicesPart(v)), ui.TiesSection("Dependencies", page.ClusterTies(v, known)))
	return s.Render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "Services"), page)
}

func servicesOn(v clusters.ClusterView, n loom.Node, now time.Time) []clusterview.ServiceOn {
	var out []clusterview.ServiceOn
	for _, name := range n.Services {
		state := serviceState(n, name)
		if seen, at := serviceSeen(v, n, name); seen != "" {
			state = ui.HealthState(seen, at, now)
		}
		out = append(out, clusterview.ServiceOn{Name: name, State: state.Of("service", name+" on "+string(n.ID))})
	}
	return out
}

// serviceSeen is what was seen of a service that tasks left running, and when: passing, failing,
// or unknown on a machine that does not answer. It is "" where nobody looked.
func serviceSeen(v clusters.ClusterView, n loom.Node, service string) (loom.HealthStatus, time.Time) {
	h, ok := healthOf(v, n.ID)
	switch {
	case !ok || n.ServiceStates[service] != loom.ServiceStarted:
		return "", time.Time{}
	case h.Status.Silent():
		return loom.HealthUnknown, time.Time{}
	}
	switch seen := h.Services[service]; seen.Status {
	case loom.HealthFailing:
		return seen.Status, seen.CheckedAt
	case loom.HealthPassing:
		return seen.Status, seen.PassedAt
	}
	return "", time.Time{}
}

func serviceState(n loom.Node, service string) ui.State {
	state := n.ServiceStates[service]
	if state == "" {
		state = loom.ServiceAbsent
	}
	return ui.ServiceState(state)
}

const (
	// serviceNodes is up to how many nodes of a service are named in its row.
	serviceNodes = 3
	// serviceLinksShown bounds the links of a service that are shown.
	serviceLinksShown = 4
)

// serviceStates are the states of services, what needs attention first.
var serviceStates = []loom.ServiceState{loom.ServiceFailed, loom.ServiceAbsent, loom.ServiceInstalled, loom.ServiceStopped, loom.ServiceStarted}

// servicesPart is the table of services, each with where it runs.
func (s *Server) servicesPart(v clusters.ClusterView) clusterview.ServicesModel {
	m := clusterview.ServicesModel{ID: v.ID}
	for _, name := range slices.Sorted(maps.Keys(v.Services)) {
		m.Rows = append(m.Rows, s.serviceRow(v, name))
	}
	return m
}

func (s *Server) serviceRow(v clusters.ClusterView, name string) clusterview.ServiceRow {
	service := v.Services[name]
	row := clusterview.ServiceRow{
		Base:     service.Base,
		AllNodes: route.Query(route.ClusterNodes(v.ID), "view", "flat", "service", name),
	}
	if v.Status != loom.ClusterTerminated {
		actions := serviceActions(v, name) // start, stop, restart
		restart, verb := actions[2], "Restart "
		if on, stopped := serviceCounts(v, name, loom.ServiceStopped); on > 0 && on == stopped {
			restart, verb = actions[0], "Start "
		}
		row.Restart = ui.ButtonModel{Label: restart.Label, Small: true, Href: restart.Href, WhyNot: restart.WhyNot, Attrs: restart.Attrs}
		row.Restart.Attrs["aria-label"] = verb + name
		row.Menu = append(actions[:2:2],
			ui.MenuItem{Label: "Update", Icon: "arrow-up", Href: route.Query(route.ClusterVerb(v.ID, string(loom.ChangeUpdate)), "entries", entryValue(loom.KindService, name)), WhyNot: v.Allowed[loom.ChangeUpdate]},
			ui.MenuItem{Label: "Remove", Icon: "trash", Href: route.Query(route.ClusterServices(v.ID, "remove"), "services", name), WhyNot: v.Allowed[loom.ChangeRemoveServices], Danger: true, Divider: true},
		)
	}
	states, seen := map[loom.ServiceState]int{}, map[loom.HealthStatus]int{}
	oldest := map[loom.HealthStatus]time.Time{}
	var linked []string // the host of each link
	for _, n := range v.Nodes {
		if !slices.Contains(n.Services, name) {
			continue
		}
		row.Count++
		state := n.ServiceStates[name]
		if state == "" {
			state = loom.ServiceAbsent
		}
		if status, at := serviceSeen(v, n, name); status != "" {
			seen[status]++
			if oldest[status].IsZero() || at.Before(oldest[status]) {
				oldest[status] = at
			}
		} else {
			states[state]++
		}
		if row.Count <= serviceNodes {
			row.Nodes = append(row.Nodes, clusterview.NodeOf{Hostname: ui.NodeNumber(n.Hostname), Href: route.Node(v.ID, n.ID), Journal: journalLink(v, n, name)})
		}
		for _, a := range n.Actions {
			if a.Service == name && !a.Started.Before(row.Last.Started) {
				row.Last = a
			}
		}
		for _, l := range serviceLinks(v, n, name) {
			if len(row.Links) < serviceLinksShown {
				row.Links, linked = append(row.Links, l), append(linked, ui.NodeNumber(n.Hostname))
			}
		}
	}
	for i := range row.Links {
		if row.Count > 1 {
			row.Links[i].Label += " on " + linked[i]
		}
	}
	for _, status := range []loom.HealthStatus{loom.HealthFailing, loom.HealthUnknown, loom.HealthPassing} {
		if k := seen[status]; k > 0 {
			badge := ui.HealthState(status, oldest[status], s.Now())
			if row.Count > 1 {
				badge = badge.With(strconv.Itoa(k))
			}
			row.States = append(row.States, badge)
		}
	}
	for _, state := range serviceStates {
		if k := states[state]; k > 0 {
			badge := ui.ServiceState(state)
			if row.Count > 1 {
				badge = badge.With(strconv.Itoa(k))
			}
			row.States = append(row.States, badge)
		}
	}
	return row
}

// nodeLinks are those of the services of a node that run.
func nodeLinks(v clusters.ClusterView, n loom.Node) []loom.Link {
	var links []loom.Link
	for _, name := range n.Services {
		links = append(links, serviceLinks(v, n, name)...)
	}
	return links
}

// serviceLinks are those of one service on a node, while it runs there.
func serviceLinks(v clusters.ClusterView, n loom.Node, service string) []loom.Link {
	if !v.Runs(&n, service) {
		return nil
	}
	return linkModels(v.ServiceLinks[n.ID][service])
}

// macroLeft finds a macro that could not be expanded yet.
var macroLeft = regexp.MustCompile(`%(host|ip|num|instance|cluster)\.|%(join|map)\(`)

// linkModels leaves out links that are not known in full yet.
func linkModels(links []loom.Link) []loom.Link {
	var out []loom.Link
	for _, l := range links {
		if macroLeft.MatchString(l.URL) {
			continue
		}
		l.Label = cmp.Or(l.Label, l.URL)
		out = append(out, l)
	}
	return out
}
