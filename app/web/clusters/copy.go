package clusters

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// copyLinks lead to all nodes of a cluster as a text, with one kind of address.
func copyLinks(id loom.ClusterID, choice addressChoice) clusterview.Copies {
	at := func(as string) string {
		return route.Query(route.ClusterCopy(id, as), addressParam, string(choice))
	}
	return clusterview.Copies{SSHConfig: at("ssh"), Hosts: at("hosts"), CSV: at("csv")}
}

// clusterSSHConfig is an ssh_config with an entry per node.
func (s *Server) clusterSSHConfig(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	c, err := s.connections(r.Context(), actor, v, readAddressChoice(r.URL.Query()))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "ssh-config-"+v.ID.String()))
	_, err = w.Write([]byte(sshConfig(v, &c)))
	return err
}

// sshConfig has an entry for each node that the viewer can sign in to, and a comment for
// each other one that has an address.
func sshConfig(v clusters.ClusterView, c *connections) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Nodes of cluster %s (%s). Include it from ~/.ssh/config.\n", v.ID, plainLine(v.Name))
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if !c.reachable(n) {
			continue
		}
		// What a plugin reported must not become another directive.
		if line, why := c.command(n); line == "" {
			fmt.Fprintf(&b, "\n# %s: %s\n", plainLine(n.Hostname), why)
			continue
		}
		user, port := n.SignIn()
		fmt.Fprintf(&b, "\nHost %s %s\n  HostName %s\n  User %s\n", plainLine(ui.ShortHost(n.Hostname)), plainLine(n.Hostname), plainLine(c.choice.of(*n)), plainLine(user))
		if port != 22 {
			fmt.Fprintf(&b, "  Port %d\n", port)
		}
		if c.signIns.Jump != "" {
			fmt.Fprintf(&b, "  ProxyJump %s\n", c.signIns.Jump)
		}
		if c.signIns.Best(n) == clusters.AccessClusterKey {
			fmt.Fprintf(&b, "  IdentityFile %s\n  IdentitiesOnly yes\n", clusters.KeyFile(v.ID))
		}
	}
	return b.String()
}

// clusterCopy is all nodes as a text to copy: an ssh_config, entries of /etc/hosts or
// CSV.
func (s *Server) clusterCopy(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	as, choice := r.URL.Query().Get("as"), readAddressChoice(r.URL.Query())
	c, err := s.connections(r.Context(), actor, v, choice)
	if err != nil {
		return err
	}
	m := clusterview.CopyModel{Name: v.Name, Back: route.Query(route.ClusterNodes(v.ID), addressParam, string(choice))}
	m.Addresses = addressChoices(v.Nodes, choice, func(c addressChoice) string {
		return route.Query(route.ClusterCopy(v.ID, as), addressParam, string(c))
	})
	file, kind := "", ""
	switch as {
	case "ssh":
		m.Title, m.Text, file, kind = "ssh_config", sshConfig(v, &c), "ssh-config-"+v.ID.String(), "text/plain; charset=utf-8"
		m.Note = "Put it in ~/.ssh/config, or name it with ssh -F."
	case "hosts":
		m.Title, m.Text, file, kind = "Hosts entries", hostsEntries(v, choice), "hosts-"+v.ID.String(), "text/plain; charset=utf-8"
		m.Note = "Lines for /etc/hosts."
	case "csv":
		m.Title, m.Text, file, kind = "CSV", nodesCSV(v, &c), "nodes-"+v.ID.String()+".csv", "text/csv; charset=utf-8"
	default:
		return loom.NewError(loom.NotFound, "Nodes are given as ssh, hosts or csv, not as “%.20s”.", as)
	}
	if r.URL.Query().Get("download") != "" {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", file))
		_, err := w.Write([]byte(m.Text))
		return err
	}
	m.Download = route.Query(r.URL.Path, "as", as, addressParam, string(choice), "download", "1")
	if page.Wants(r, page.DialogID) {
		return s.Fragment(w, r, http.StatusOK, clusterview.CopyDialog(m))
	}
	page := clusterPage(m.Title+" of "+v.Name, "Nodes", ui.Crumb{Label: v.Name, Href: route.Cluster(v.ID)}, ui.Crumb{Label: "Nodes", Href: route.ClusterNodes(v.ID)}, ui.Crumb{Label: m.Title})
	return s.Render(w, r, actor, http.StatusOK, page, clusterview.CopyPage(m))
}

// hostsEntries has a line for each node with an address.
func hostsEntries(v clusters.ClusterView, choice addressChoice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Nodes of cluster %s (%s).\n", v.ID, plainLine(v.Name))
	for _, n := range v.Nodes {
		if address := choice.of(n); address != "" && n.State != loom.NodeDeleted {
			names := plainLine(n.Hostname)
			if short := plainLine(ui.ShortHost(n.Hostname)); short != names {
				names += " " + short
			}
			fmt.Fprintf(&b, "%s\t%s\n", plainLine(address), names)
		}
	}
	return b.String()
}

var unsafeConfig = regexp.MustCompile(`[^A-Za-z0-9_.:@-]`)

// plainLine keeps what a plugin reported from becoming another line or word.
func plainLine(text string) string { return unsafeConfig.ReplaceAllString(text, "") }

// nodesCSV has a line for each node, those that are gone too; the SSH command names the
// chosen address.
func nodesCSV(v clusters.ClusterView, c *connections) string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	// Writing to memory does not fail.
	_ = w.Write([]string{"number", "hostname", "id", "state", "access_v4", "bind_v4", "hardware", "image", "services", "ssh_user", "ssh_command"})
	for _, n := range v.Nodes {
		user, _ := n.SignIn()
		command, _ := c.command(&n)
		_ = w.Write([]string{strconv.Itoa(n.Number), n.Hostname, string(n.ID), string(n.State), n.Addresses[loom.AccessV4], n.Addresses[loom.BindV4],
			n.HardwareType, n.ImageType, strings.Join(n.Services, " "), page.CsvText(user), page.CsvText(command)})
	}
	w.Flush()
	return b.String()
}
