package web

import (
	"context"
	"strings"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

// connectShown is how many machines the overview of a cluster names; the tab of nodes
// has all.
const connectShown = 20

// connectPart is the links of a cluster and how to sign in to its machines.
func (s *Server) connectPart(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, choice addressChoice) (clusterview.ConnectModel, error) {
	at := func(base string) string { return route.Query(base, addressParam, string(choice)) }
	m := clusterview.ConnectModel{ID: v.ID, Live: at(clusterview.PartURL(v.ID, clusterview.PartConnect)), Copies: copyLinks(v.ID, choice), Gone: v.Status == loom.ClusterTerminated}
	if m.Gone {
		return m, nil
	}
	own, err := s.ownKeys(ctx, actor)
	if err != nil {
		return m, err
	}
	m.OwnKeys, m.AllNodes, m.OneAddress = own, route.Query(route.ClusterNodes(v.ID), "view", "flat", addressParam, string(choice)), oneAddress(v.Nodes)
	m.Addresses = addressChoices(v.Nodes, choice, func(c addressChoice) string {
		return route.Query(route.Cluster(v.ID), addressParam, string(c)) + "#" + clusterview.PartConnect.ID()
	})
	m.Links = linkModels(v.OpenLinks)
	for _, n := range v.Nodes {
		if n.State == loom.NodeDeleted {
			continue
		}
		if m.Count++; m.Count > connectShown {
			continue
		}
		c := clusterview.ConnectNode{
			Hostname: shortHost(n.Hostname), Href: at(route.Node(v.ID, n.ID)), Services: strings.Join(n.Services, ", "),
			State: nodeState(v, &n), Command: sshCommand(v.ID, n, own, choice),
		}
		c.Links = nodeLinks(v, n)
		c.Links = c.Links[:min(len(c.Links), serviceLinksShown)]
		if c.Command != "" {
			c.Reveal = at(route.NodeReveal(v.ID, n.ID))
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
func sshCommand(id loom.ClusterID, n loom.Node, ownKeys bool, choice addressChoice) string {
	address := choice.of(n)
	if address == "" || n.State == loom.NodeDeleted || n.State == loom.NodePlanned {
		return ""
	}
	if ownKeys {
		return "ssh " + n.SSHUser + "@" + address
	}
	return "ssh -i " + keyFile(id) + " " + n.SSHUser + "@" + address
}
