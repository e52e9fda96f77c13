package web

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

func (s *Server) clusterNodes(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	m, err := s.nodesPart(r.Context(), actor, v)
	if err != nil {
		return err
	}
	return s.render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "Nodes"), clusterview.NodesPage(s.clusterHead(actor, v, "nodes"), m))
}

func (s *Server) clusterServices(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	page := clusterview.ServicesPage(s.clusterHead(actor, v, "services"), s.servicesPart(v))
	return s.render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "Services"), page)
}

func (s *Server) clusterOperations(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	m, err := s.operationRows(r.Context(), actor, v.ID, 0)
	if err != nil {
		return err
	}
	page := clusterview.OperationsPage(s.clusterHead(actor, v, "operations"), m)
	return s.render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "Operations"), page)
}

func (s *Server) clusterConfig(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	config, _ := loom.MaskSecrets(v.Config).(map[string]any)
	usual, _ := loom.MaskSecrets(v.Template.Defaults.Config).(map[string]any)
	m := clusterview.ConfigModel{Text: configText(config), Template: v.Template.Name, Differences: configChanges("", usual, config)}
	return s.render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "Config"), clusterview.ConfigPage(s.clusterHead(actor, v, "config"), m))
}

// configChanges compares two configs key by key, nested ones by their path.
func configChanges(path string, from, to map[string]any) []ui.ChangeModel {
	keys := map[string]bool{}
	for key := range from {
		keys[key] = true
	}
	for key := range to {
		keys[key] = true
	}
	var names []string
	for key := range keys {
		names = append(names, key)
	}
	slices.Sort(names)
	var changes []ui.ChangeModel
	for _, key := range names {
		old, had := from[key]
		now, has := to[key]
		at := strings.TrimPrefix(path+"."+key, ".")
		left, leftOK := old.(map[string]any)
		right, rightOK := now.(map[string]any)
		c := ui.ChangeModel{Object: "config", Name: at, Old: fmt.Sprint(old), New: fmt.Sprint(now)}
		switch {
		case leftOK && rightOK:
			changes = append(changes, configChanges(at, left, right)...)
			continue
		case !had:
			c.Sign, c.Old = ui.SignCreate, ""
		case !has:
			c.Sign, c.New = ui.SignRemove, ""
		case c.Old == c.New:
			continue
		default:
			c.Sign = ui.SignChange
		}
		changes = append(changes, c)
	}
	return changes
}

// nodesPart is the table of machines.
func (s *Server) nodesPart(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView) (clusterview.NodesModel, error) {
	m := clusterview.NodesModel{ID: v.ID}
	own, err := s.ownKeys(ctx, actor)
	if err != nil {
		return m, err
	}
	for _, n := range v.Nodes {
		m.Rows = append(m.Rows, clusterview.NodeRow{
			ID: string(n.ID), Hostname: n.Hostname, Href: route.Node(v.ID, n.ID), State: ui.NodeState(n.State), Addresses: addresses(n),
			Hardware: n.HardwareType, Image: n.ImageType, Services: servicesOn(n), Command: sshCommand(v.ID, n, own),
			Leaving: n.Leaving && n.State != loom.NodeDeleted, Menu: nodeActions(v, n),
		})
	}
	return m, nil
}

func servicesOn(n loom.Node) []clusterview.ServiceOn {
	var out []clusterview.ServiceOn
	for _, name := range n.Services {
		out = append(out, clusterview.ServiceOn{Name: name, State: serviceState(n, name)})
	}
	return out
}

func serviceState(n loom.Node, service string) ui.State {
	state := n.ServiceStates[service]
	if state == "" {
		state = loom.ServiceAbsent
	}
	return ui.ServiceState(state)
}

// servicesPart is the table of services, each with where it runs.
func (s *Server) servicesPart(v lifecycle.ClusterView) clusterview.ServicesModel {
	m := clusterview.ServicesModel{ID: v.ID}
	var names []string
	for name := range v.Services {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		row := clusterview.ServiceRow{Name: name, Description: v.Services[name].Description, Menu: serviceActions(v, name)}
		for _, n := range v.Nodes {
			if !slices.Contains(n.Services, name) {
				continue
			}
			on := clusterview.NodeOf{Hostname: shortHost(n.Hostname), Href: route.Node(v.ID, n.ID), State: serviceState(n, name)}
			for _, a := range n.Actions {
				if a.Service == name {
					on.Last, on.LastHref = string(a.Action)+", "+ui.Relative(a.Started, s.now()), route.Task(a.Task)
				}
			}
			on.Links = serviceLinks(v, n, name)
			row.Nodes = append(row.Nodes, on)
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

// serviceLinks are those of one service on a node.
func serviceLinks(v lifecycle.ClusterView, n loom.Node, service string) []clusterview.LinkModel {
	if n.State != loom.NodeReady {
		return nil
	}
	return linkModels(v.ServiceLinks[n.ID][service])
}

// macroLeft finds a macro that could not be expanded yet.
var macroLeft = regexp.MustCompile(`%(host|ip|num|instance|cluster)\.|%(join|map)\(`)

// linkModels leaves out links that are not known in full yet.
func linkModels(links []loom.Link) []clusterview.LinkModel {
	var out []clusterview.LinkModel
	for _, l := range links {
		if macroLeft.MatchString(l.URL) {
			continue
		}
		label := l.Label
		if label == "" {
			label = l.URL
		}
		out = append(out, clusterview.LinkModel{Label: label, URL: l.URL})
	}
	return out
}

// operationRows lists operations, newest first; limit 0 is all.
func (s *Server) operationRows(ctx context.Context, actor loom.Actor, id loom.ClusterID, limit int) (clusterview.OperationsModel, error) {
	m := clusterview.OperationsModel{ID: id, Now: s.now(), Limit: limit}
	operations, err := s.Clusters.Operations(ctx, actor, id)
	if err != nil {
		return m, err
	}
	for _, op := range operations {
		if limit > 0 && len(m.Rows) == limit {
			break
		}
		p := op.Progress()
		tasks := strconv.Itoa(p.Done) + " of " + strconv.Itoa(p.Total)
		if failed := op.Tasks[loom.TaskFailed]; failed > 0 {
			tasks += ", " + strconv.Itoa(failed) + " failed"
		}
		m.Rows = append(m.Rows, clusterview.OperationRow{
			Number: strconv.Itoa(op.Ref.Number), Action: op.Action.Verb(), Href: route.Operation(op.Ref), By: string(op.RequestedBy),
			State: ui.OperationState(op.Status, op.Aborted), Started: op.Started, Duration: s.elapsed(op.Started, op.Ended), Tasks: tasks, Message: op.Message,
		})
	}
	return m, nil
}
