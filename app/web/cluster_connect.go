package web

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// connectShown is how many machines the overview of a cluster names; the tab of nodes
// has all.
const connectShown = 20

// connectPart is the links of a cluster and how to sign in to its machines.
func (s *Server) connectPart(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView) (clusterview.ConnectModel, error) {
	m := clusterview.ConnectModel{ID: v.ID, SSHConfig: route.ClusterSSHConfig(v.ID), Gone: v.Status == loom.ClusterTerminated}
	if m.Gone {
		return m, nil
	}
	own, err := s.ownKeys(ctx, actor)
	if err != nil {
		return m, err
	}
	m.OwnKeys, m.AllNodes = own, route.Query(route.ClusterNodes(v.ID), "view", "flat")
	if v.Status == loom.ClusterActive {
		m.Links = linkModels(v.Links)
	}
	for _, n := range v.Nodes {
		if n.State == loom.NodeDeleted {
			continue
		}
		if m.Count++; m.Count > connectShown {
			continue
		}
		c := clusterview.ConnectNode{
			Hostname: shortHost(n.Hostname), Href: route.Node(v.ID, n.ID), Services: strings.Join(n.Services, ", "),
			State: ui.NodeState(n.State), Command: sshCommand(v.ID, n, own),
		}
		if n.State == loom.NodeReady {
			c.Links = linkModels(v.NodeLinks[n.ID])
			c.Links = c.Links[:min(len(c.Links), serviceLinksShown)]
		}
		if c.Command != "" {
			c.Reveal = route.NodeReveal(v.ID, n.ID)
		}
		m.Nodes = append(m.Nodes, c)
	}
	return m, nil
}

// ownKeys reports whether the viewer has SSH keys in the account.
func (s *Server) ownKeys(ctx context.Context, actor loom.Actor) (bool, error) {
	user, err := s.Accounts.User(ctx, actor, actor.User)
	return len(user.SSHKeys) > 0, err
}

// keyFile is what the key of a cluster is best stored as.
func keyFile(id loom.ClusterID) string { return "loom-" + id.String() + ".pem" }

// sshCommand is the line that signs in to a node, empty before it has an address.
// Without own keys it names the file with the key of the cluster.
func sshCommand(id loom.ClusterID, n loom.Node, ownKeys bool) string {
	address := sshAddress(n)
	if address == "" || n.State == loom.NodeDeleted || n.State == loom.NodePlanned {
		return ""
	}
	if ownKeys {
		return "ssh " + n.SSHUser + "@" + address
	}
	return "ssh -i " + keyFile(id) + " " + n.SSHUser + "@" + address
}

func sshAddress(n loom.Node) string {
	if a := n.Addresses[loom.AccessV4]; a != "" {
		return a
	}
	return n.Addresses[loom.BindV4]
}

// addresses are those of a node, that for access first.
func addresses(n loom.Node) []string {
	var out []string
	if a := sshAddress(n); a != "" {
		out = append(out, a)
	}
	for _, kind := range []string{loom.BindV4} {
		if a := n.Addresses[kind]; a != "" && (len(out) == 0 || out[0] != a) {
			out = append(out, a+" (internal)")
		}
	}
	return out
}

var unsafeConfig = regexp.MustCompile(`[^A-Za-z0-9_.:@-]`)

// clusterSSHConfig is an ssh_config with an entry per node.
func (s *Server) clusterSSHConfig(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	own, err := s.ownKeys(r.Context(), actor)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "ssh-config-"+v.ID.String()))
	_, err = w.Write([]byte(sshConfig(v, own)))
	return err
}

// sshConfig has an entry for each node that can be reached.
func sshConfig(v lifecycle.ClusterView, own bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Nodes of cluster %s (%s). Include it from ~/.ssh/config.\n", v.ID, v.Name)
	for _, n := range v.Nodes {
		if sshCommand(v.ID, n, own) == "" {
			continue
		}
		// What a plugin reported must not become another directive.
		fmt.Fprintf(&b, "\nHost %s %s\n  HostName %s\n  User %s\n", plainLine(shortHost(n.Hostname)), plainLine(n.Hostname), plainLine(sshAddress(n)), plainLine(n.SSHUser))
		if !own {
			fmt.Fprintf(&b, "  IdentityFile %s\n  IdentitiesOnly yes\n", keyFile(v.ID))
		}
	}
	return b.String()
}
