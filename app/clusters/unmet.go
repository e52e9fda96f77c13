package clusters

import (
	"context"

	"loom/app/loom"
)

// Unmet is what keeps a machine from being a node that serves.
type Unmet struct {
	// Services are those that do not serve, in the order of the node's.
	Services []string
	// Wanted reports whether one of them should: it failed, or an operation has it still
	// to do or left it half way. Others were stopped or skipped on purpose.
	Wanted bool
}

// unmet finds the services of a cluster that do not serve.
func (u *Clusters) unmet(ctx context.Context, v *ClusterView) error {
	v.Unmet = map[loom.NodeID]Unmet{}
	var doubtful []loom.Node // a stopped service tells only by its history whether it should run
	for _, n := range v.Nodes {
		if n.State != loom.NodeReady && n.State != loom.NodeFailed {
			continue
		}
		var m Unmet
		stopped := false
		for _, name := range n.Services {
			if v.Runs(&n, name) {
				continue
			}
			m.Services = append(m.Services, name)
			switch state := n.ServiceStates[name]; {
			case n.Leaving, state != loom.ServiceFailed && v.Status == loom.ClusterActive:
			case state == loom.ServiceStopped:
				stopped = true
			default:
				m.Wanted = true
			}
		}
		if len(m.Services) == 0 {
			continue
		}
		v.Unmet[n.ID] = m
		if stopped && !m.Wanted {
			doubtful = append(doubtful, n)
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	past, err := u.pastOf(ctx, v.Cluster, doubtful)
	for _, n := range doubtful {
		m := v.Unmet[n.ID]
		for _, name := range m.Services {
			runs, known := past.wanted(n.ID, name)
			m.Wanted = m.Wanted || n.ServiceStates[name] == loom.ServiceStopped && (runs || !known)
		}
		v.Unmet[n.ID] = m
	}
	return err
}
