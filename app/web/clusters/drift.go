package clusters

import (
	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// clusterDrift is what is not as Loom left it on the nodes of a cluster.
func clusterDrift(v clusters.ClusterView) (rows []clusterview.DriftRow) {
	for _, n := range v.Nodes {
		for _, row := range nodeDrift(v, n.ID) {
			row.Hostname, row.Href = ui.NodeNumber(n.Hostname), route.Node(v.ID, n.ID)
			rows = append(rows, row)
		}
	}
	return rows
}

// nodeDrift is what is not as Loom left it on a node.
func nodeDrift(v clusters.ClusterView, node loom.NodeID) (rows []clusterview.DriftRow) {
	h, _ := healthOf(v, node)
	for i, d := range h.Drift {
		row := clusterview.DriftRow{Service: d.Service, Text: d.Text(), Since: d.Since}
		if d.Kind == loom.DriftFile {
			row.Sums = []ui.Def{{Term: "Was", Text: sumText(d.Was), Mono: true}, {Term: "Now", Text: sumText(d.Now), Mono: true}}
			if i == 0 || h.Drift[i-1].Service != d.Service { // once for all files of a service
				row.Repair = &buttons(repairActions(v, node, []string{d.Service}, loom.RepairByConfigure))[0]
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func sumText(sum string) string {
	if sum == "" {
		return "no file"
	}
	return sum
}

// driftLines says what is not as Loom left it on a node, a line for each service.
func driftLines(host string, h loom.NodeHealth) (lines []string) {
	troubles, _ := h.Troubles()
	for _, t := range troubles {
		switch {
		case t.Kind != loom.IncidentDrift:
		case t.Service != "":
			lines = append(lines, host+", "+t.Service+": "+t.Message)
		default:
			lines = append(lines, host+": "+t.Message)
		}
	}
	return lines
}
