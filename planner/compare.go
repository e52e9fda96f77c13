package planner

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"loom/app/loom"
)

// Effect says how a change meets what is there.
type Effect string

// The effects.
const (
	InPlace  Effect = "in place"
	Restarts Effect = "restart"
	Replaces Effect = "replace"
)

// Difference is what a plan makes of a cluster, for people to agree to.
type Difference struct {
	// Made, Replaced and Removed are machines, by node number.
	Made, Replaced, Removed []MachineChange
	// Services are changes on machines that stay, and of what is on replaced ones,
	// by node number and name.
	Services []ServiceChange
	// Config says that the configs differ.
	Config bool
}

// MachineChange is a machine that comes, goes or gives way to another.
type MachineChange struct {
	Number   int
	Hostname string
	// Because is a sentence; "" where the request itself is the reason.
	Because string
}

// ServiceChange is what happens to a service on a node. Change is "add",
// "remove", "upgrade", "configure", "start", "stop", "restart" or "reinstall".
type ServiceChange struct {
	Node    loom.NodeID
	Number  int
	Service string
	Change  string
	Effect  Effect
	Because string
}

// Compare says what a plan that leads from before to after changes, reinstall being those
// of the Change; it is pure.
// Errors: those of MakeChange about states that contradict themselves.
func Compare(before, after State, plan loom.Plan, reinstall ...string) (Difference, error) {
	d, err := newDelta(Change{Action: plan.Action, Before: before, After: after, Reinstall: reinstall})
	if err != nil {
		return Difference{}, err
	}
	out := Difference{Config: configDiffers(before.Config, after.Config)}
	actions := map[nodeService]map[loom.TaskAction]bool{}
	var places []nodeService
	for _, t := range plan.Tasks {
		at := nodeService{t.NodeNumber, t.Node, t.Service}
		if actions[at] == nil {
			actions[at] = map[loom.TaskAction]bool{}
			places = append(places, at)
		}
		actions[at][t.Action] = true
	}
	old, next := byID(before.Nodes), byID(after.Nodes)
	deltas := make(map[loom.NodeID]*nodeDelta, len(d.changed))
	for i := range d.changed {
		n := &d.changed[i]
		id := d.nodes[n.at].id
		deltas[id] = n
		m := MachineChange{Number: d.nodes[n.at].number}
		switch {
		case n.created:
			m.Hostname = next[id].Hostname
			out.Made = append(out.Made, m)
		case n.deleted:
			m.Hostname = old[id].Hostname
			out.Removed = append(out.Removed, m)
		case n.repaired || n.roll == replaces:
			m.Hostname, m.Because = next[id].Hostname, whyReplaced(old[id], next[id])
			out.Replaced = append(out.Replaced, m)
		}
	}
	slices.SortFunc(places, nodeService.compare)
	for _, at := range places {
		n := deltas[at.node]
		if at.service == "" || n != nil && (n.created || n.deleted) {
			continue
		}
		c := ServiceChange{Node: at.node, Number: at.number, Service: at.service}
		d.describe(&c, n, actions[at], out.Config)
		out.Services = append(out.Services, c)
	}
	return out, nil
}

type nodeService struct {
	number  int
	node    loom.NodeID
	service string
}

func (a nodeService) compare(b nodeService) int {
	if a.number != b.number {
		return a.number - b.number
	}
	return strings.Compare(a.service, b.service)
}

func whyReplaced(before, after *loom.Node) string {
	switch {
	case before.HardwareType != after.HardwareType:
		return fmt.Sprintf("Its hardware type changes from “%s” to “%s”.", before.HardwareType, after.HardwareType)
	case before.ImageType != after.ImageType:
		return fmt.Sprintf("Its image type changes from “%s” to “%s”.", before.ImageType, after.ImageType)
	case before.Flavor != after.Flavor:
		return fmt.Sprintf("Hardware type “%s” means “%s” now, not “%s”.", after.HardwareType, after.Flavor, before.Flavor)
	case before.Image != after.Image:
		return fmt.Sprintf("Image type “%s” means “%s” now, not “%s”.", after.ImageType, after.Image, before.Image)
	}
	return "It is repaired: a new machine takes its number and host name."
}

// describe words what the actions do to a service; n is nil for a node that is
// not changed itself.
func (d *delta) describe(c *ServiceChange, n *nodeDelta, actions map[loom.TaskAction]bool, config bool) {
	s := d.new.index[c.Service]
	start, stop := actions[loom.ActionStart], actions[loom.ActionStop]
	c.Effect = InPlace
	switch {
	case n != nil && (n.repaired || n.roll == replaces):
		c.Change, c.Effect, c.Because = "reinstall", Replaces, "Its machine is replaced."
	case n != nil && slices.Contains(n.removed, s):
		c.Change = "remove"
		if !actions[loom.ActionRemove] {
			c.Because = fmt.Sprintf("“%s” has no remove action: its files stay on the machine.", c.Service)
		}
	case n != nil && slices.Contains(n.added, s):
		c.Change = "add"
	case n != nil && slices.Contains(n.upgraded, s):
		c.Change = "upgrade"
		if start || stop {
			c.Effect = Restarts
		}
		if a, b := d.old.services[s].Version, d.new.services[s].Version; a != b {
			c.Because = fmt.Sprintf("Version %d takes the place of version %d.", b, a)
		} else {
			c.Because = "Its files are others than when it was set up."
		}
	case actions[loom.ActionInstall]:
		c.Change, c.Because = "add", "An earlier operation did not finish it."
	case actions[loom.ActionConfigure]:
		c.Change = "configure"
		if start && stop {
			c.Effect = Restarts
		}
		if followed := d.followedServices(s); !config && len(followed) > 0 {
			c.Because = fmt.Sprintf("It follows %s, whose nodes change.", strings.Join(followed, ", "))
		}
	case start && stop:
		c.Change, c.Effect = "restart", Restarts
	case start:
		c.Change = "start"
	default:
		c.Change = "stop"
	}
}

// followedServices are the services of the cluster that a service follows, by their names or by
// what they provide, before or after the change.
func (d *delta) followedServices(s int) []string {
	follows := d.new.services[s].Follows
	var names []string
	for _, c := range []*catalog{d.old, d.new} {
		for i := range c.services {
			other := &c.services[i]
			wanted := slices.Contains(follows, other.Name) || slices.ContainsFunc(other.Dependencies.Provides, func(p string) bool { return slices.Contains(follows, p) })
			if wanted && !slices.Contains(names, other.Name) {
				names = append(names, other.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// configDiffers reports whether two JSON objects differ; a nil one is as an empty one.
func configDiffers(before, after map[string]any) bool {
	return !maps.EqualFunc(before, after, func(a, b any) bool {
		x, isObject := a.(map[string]any)
		y, too := b.(map[string]any)
		if isObject && too {
			return !configDiffers(x, y)
		}
		return reflect.DeepEqual(a, b)
	})
}
