package clusters

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// problemsShown is how many macros that cannot be filled in are named.
const problemsShown = 10

// clusterConfig is the config in use, raw or with its macros filled in for a node, how
// it differs from the template's, and every one before it.
func (s *Server) clusterConfig(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	base, q := route.ClusterTab(v.ID, "config"), r.URL.Query()
	secrets, diffs := secretsOf(v), newConfigDiffs("", configLines)
	present := secrets.Mask(v.Config)
	m := clusterview.ConfigModel{Cluster: v.ID, Self: base, Label: "Config in use", Text: configText(present), Template: v.Template.Name,
		Differences: diffs.of(secrets.Mask(v.Template.Defaults.Config), present)}
	if v.Allowed[loom.ChangeConfigure] == "" && v.Status != loom.ClusterTerminated {
		m.Edit = route.ClusterVerb(v.ID, "reconfigure")
	}
	m.Settings = settingRows(actor, v)
	expanded := q.Get("macros") == "expanded"
	m.Expanded = expanded
	m.Macros = clusterview.Choices{Label: "Macros", Options: []ui.Tab{{Label: "As written", Href: base, Current: !expanded}, {Label: "Filled in", Href: route.Query(base, "macros", "expanded"), Current: expanded}}}
	if expanded {
		node := nodeOf(v, q.Get("node"))
		filled, problems := v.ExpandedConfig(node.ID)
		m.Label, m.Text = "Config with macros filled in", configText(secrets.Mask(filled))
		if node.ID != "" {
			m.Label += ", as " + ui.NodeNumber(node.Hostname) + " reads it"
		}
		for _, p := range problems[:min(len(problems), problemsShown)] {
			m.Problems = append(m.Problems, problemWords(p))
		}
		m.More = max(0, len(problems)-problemsShown)
		for _, n := range placedNodes(v) {
			m.Nodes = append(m.Nodes, ui.Option{Value: string(n.ID), Label: ui.NodeNumber(n.Hostname), Selected: n.ID == node.ID})
		}
	}
	if err := s.configHistory(r.Context(), actor, v, &m, diffs, q.Get("revision")); err != nil {
		return err
	}
	return s.Render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "Config"), clusterview.ConfigPage(s.clusterHead(actor, v, "config"), m))
}

func masked(config map[string]any) map[string]any {
	out, _ := loom.MaskSecrets(config).(map[string]any)
	return out
}

// nodeOf is the named node of a cluster, or its first one.
func nodeOf(v clusters.ClusterView, id string) loom.Node {
	nodes := placedNodes(v)
	for _, n := range nodes {
		if string(n.ID) == id {
			return n
		}
	}
	if len(nodes) > 0 {
		return nodes[0]
	}
	return loom.Node{}
}

// restoreAction offers the config from before an operation that was to bring another
// one and failed; nil where there is none, or it is in use.
func (s *Server) restoreAction(ctx context.Context, actor loom.Actor, v clusters.ClusterView, op loom.Operation) (*ui.ButtonModel, error) {
	failed := op.Status == loom.OperationFailed || op.Status == loom.OperationAborted
	if !failed || op.Action != loom.ClusterConfigure && op.Action != loom.ClusterConfigureWithRestart {
		return nil, nil
	}
	revisions, err := s.Clusters.ConfigVersions(ctx, actor, v.ID)
	if err != nil || len(revisions) < 2 {
		return nil, err
	}
	before := revisions[1]
	return &ui.ButtonModel{Label: "Restore config " + strconv.Itoa(before.Revision), Icon: "rotate", Href: route.ConfigRestore(v.ID, before.Revision, true), WhyNot: v.Allowed[loom.ChangeConfigure]}, nil
}

// configHistory lists the configs there were; of the chosen one it shows what it
// changed, and what has changed since.
func (s *Server) configHistory(ctx context.Context, actor loom.Actor, v clusters.ClusterView, m *clusterview.ConfigModel, diffs *configDiffs, chosen string) error {
	revisions, err := s.Clusters.ConfigVersions(ctx, actor, v.ID)
	if err != nil {
		return err
	}
	m.History = revisions
	for i, rev := range revisions {
		if strconv.Itoa(rev.Revision) != chosen {
			continue
		}
		config, err := s.Clusters.ConfigVersion(ctx, actor, v.ID, rev.Revision)
		if err != nil {
			return err
		}
		m.Revision = &clusterview.ConfigRevision{Number: rev.Revision, Text: configText(secretsOf(v).Mask(config))}
		if i > 0 {
			m.Revision.Since = diffs.of(secretsOf(v).Mask(config), maskedConfig(v))
			m.Revision.IsOld = true
			if m.Edit != "" {
				m.Revision.Restore = route.ConfigRestore(v.ID, rev.Revision, true)
			}
		}
		if i+1 < len(revisions) {
			before, err := s.Clusters.ConfigVersion(ctx, actor, v.ID, revisions[i+1].Revision)
			if err != nil {
				return err
			}
			m.Revision.Before = revisions[i+1].Revision
			m.Revision.Changed = diffs.of(secretsOf(v).Mask(before), secretsOf(v).Mask(config))
		}
	}
	if chosen != "" && m.Revision == nil {
		return loom.NewError(loom.NotFound, "Cluster %s has had no config “%.20s”.", v.ID, chosen)
	}
	return nil
}

// configFields words errors about a place in a config, "config/web/port", as errors of
// the field in which the config is typed.
// One about a setting leads to its field where that is shown.
func configFields(fields []loom.FieldError, shown []string) []loom.FieldError {
	out := make([]loom.FieldError, len(fields))
	for i, e := range fields {
		if key, isSetting := strings.CutPrefix(e.Field, "config."); isSetting {
			if e.Field = "config"; slices.Contains(shown, key) {
				e.Field = settingPrefix + key
			}
		}
		name, pointer, within := strings.Cut(e.Field, "/")
		if name == "config" || name == "configPatch" {
			if e.Field = "config"; within {
				e.Message = "At " + page.PlainPath(pointer) + ": " + e.Message
			}
		}
		out[i] = e
	}
	return out
}

// problemWords says which macro of a config could not be filled in, where it stands and
// why.
func problemWords(p clusters.ConfigProblem) string {
	text := strings.TrimSuffix(p.Reason, ".") + "."
	if p.Macro != "" {
		text = "“" + p.Macro + "” stays as written: " + text
	}
	if p.Pointer != "" {
		text = page.PlainPath(p.Pointer) + ": " + text
	}
	return text
}
