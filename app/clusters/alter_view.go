package clusters

import (
	"fmt"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/planner"
)

// alter shows what becomes of the layout: config, machines, then services by node.
func (v *PreviewView) alter(d *liveDraft, list *changeList) error {
	diff, err := planner.Compare(d.Altered.Was, planner.State{Nodes: d.Nodes, Services: d.Services}, v.Plan, d.again()...)
	if err != nil {
		return err
	}
	v.Made, v.Replaced, v.Left, v.Gone = len(diff.Made), len(diff.Replaced), len(diff.Removed), d.leavers()
	v.Altered = d.Altered.Services
	v.After.Nodes += d.more()
	for _, n := range v.Gone {
		if n.State != loom.NodeDeleted {
			v.After.Nodes--
		}
	}
	list.config(d)
	list.machines("create", diff.Made)
	list.machines("replace", diff.Replaced)
	list.machines("remove", diff.Removed)
	for _, n := range d.Nodes {
		if d.resumes(n.ID, "") {
			list.add(Change{Change: "change", Object: "node", Name: n.Hostname, Node: n.Number, Because: "An earlier operation did not make it ready."})
		}
	}
	list.alteredServices(d, diff)
	told := map[string]bool{}
	for _, c := range diff.Services {
		told[c.Service] = told[c.Service] || c.Change == "configure"
	}
	for _, name := range sortedNames(told) {
		if told[name] {
			v.Told = append(v.Told, name)
		}
	}
	return nil
}

func (l *changeList) machines(word string, machines []planner.MachineChange) {
	for _, m := range machines {
		l.add(Change{Change: word, Object: "node", Name: m.Hostname, Node: m.Number, Because: m.Because})
	}
}

// alteredServices lists services by node: those of whole nodes that come and go, and
// what happens to others. One without any action comes and goes as well.
func (l *changeList) alteredServices(d *liveDraft, diff planner.Difference) {
	said := map[loom.NodeID][]planner.ServiceChange{}
	for _, c := range diff.Services {
		said[c.Node] = append(said[c.Node], c)
	}
	d.pairs(func(before, after *loom.Node) {
		switch {
		case before == nil:
			l.services("create", after, after.Services)
			return
		case after == nil:
			l.services("remove", before, before.Services)
			return
		}
		for _, c := range said[after.ID] {
			l.add(d.alteredService(before, c))
		}
		for _, name := range slices.Concat(before.Services, after.Services) {
			had, has := slices.Contains(before.Services, name), slices.Contains(after.Services, name)
			if had == has || slices.ContainsFunc(said[after.ID], func(c planner.ServiceChange) bool { return c.Service == name }) {
				continue
			}
			word := map[bool]string{true: "remove", false: "create"}[had]
			l.add(Change{Change: word, Object: "service", Name: name, Node: after.Number, Because: "It defines no action for that, so nothing runs."})
		}
	})
}

func (l *changeList) services(word string, n *loom.Node, names []string) {
	for _, name := range names {
		l.add(Change{Change: word, Object: "service", Name: name, Node: n.Number})
	}
}

// alteredService gives a change of a service as a line.
func (d *liveDraft) alteredService(n *loom.Node, c planner.ServiceChange) Change {
	line := Change{Change: "change", Object: "service", Name: c.Service, Node: c.Number, Because: c.Because}
	state := func(to loom.ServiceState) {
		if from := n.ServiceStates[c.Service]; from != "" {
			line.Old = string(from)
		}
		line.New = string(to)
	}
	switch c.Change {
	case "add":
		line.Change = "create"
	case "remove":
		line.Change = "remove"
	case "reinstall":
		line.Change = "replace"
	case "start":
		state(loom.ServiceStarted)
	case "stop":
		state(loom.ServiceStopped)
	default:
		if c.Effect == planner.Restarts {
			line.Change = "restart"
		}
	}
	if d.resumes(c.Node, c.Service) {
		line.Because = "An earlier operation did not finish it; it should run."
	}
	if c.Change == "upgrade" {
		line.Because = ""
		if was, is := d.Altered.Was.Services[c.Service].Version, d.Services[c.Service].Version; was != is {
			line.Old, line.New = was, is
		}
		if files := d.Altered.Files[c.Service]; len(files) > 0 {
			line.Because = "Newer files: " + strings.Join(files, ", ") + "."
		}
	}
	return line
}

// altered says what becomes of nodes and services.
func (v *PreviewView) altered() string {
	switch v.Kind {
	case loom.ChangeExpand:
		return "Adds " + count(v.Made, "node")
	case loom.ChangeShrink:
		return fmt.Sprintf("Removes %s with all that is on %s", count(v.Left, "node"), map[bool]string{true: "it", false: "them"}[v.Left == 1])
	case loom.ChangeRemoveServices:
		return "Removes " + count(len(v.Altered), "service") + " from the cluster"
	case loom.ChangeUpgrade:
		return "Brings " + count(len(v.Altered), "service") + " to the newest version"
	case loom.ChangeResize:
		return "Gives " + count(v.Replaced, "node") + " other hardware"
	}
	return "Makes the machines of " + count(v.Replaced, "node") + " anew"
}

// told names the services that hear of it.
func (v *PreviewView) told() string {
	if len(v.Told) == 0 {
		return ""
	}
	return ", configures " + strings.Join(v.Told, ", ") + " again"
}
