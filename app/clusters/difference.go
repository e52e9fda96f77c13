package clusters

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/planner"
)

// ChangeLine is one line of a preview. Change is "create", "change" (in place),
// "restart", "replace" or "remove"; Object is "node", "service", "config" or "template",
// Node the number of the node concerned. Name is a host name, a service, or the
// JSON pointer of a value. Old and New hold values with secrets masked.
type ChangeLine struct {
	Change, Object, Name string
	Node                 int
	Old, New             any
	// Because is a sentence where the reason is not the request itself.
	Because string
}

// maxChanges is how much of a long list of changes a preview holds; the others are
// counted.
const maxChanges = 1000

// changeList keeps the first changes and counts all.
type changeList struct {
	lines []ChangeLine
	all   int
}

func (l *changeList) add(c ChangeLine) {
	if l.all++; len(l.lines) < maxChanges {
		l.lines = append(l.lines, c)
	}
}

// wholeNodes lists nodes that come or go, with the services on them.
func (l *changeList) wholeNodes(word string, nodes []loom.Node) {
	for _, n := range nodes {
		l.add(ChangeLine{Change: word, Object: "node", Name: n.Hostname, Node: n.Number})
	}
	for _, n := range nodes {
		for _, s := range n.Services {
			l.add(ChangeLine{Change: word, Object: "service", Name: s, Node: n.Number})
		}
	}
}

// showInPlace lists what an operation does to machines that stay: first the config, then
// each node with what happens on it.
func showInPlace(v *PreviewView, c *change, list *changeList) error {
	v.Layout = layoutOf(c.After.Nodes)
	list.config(c)
	type place struct {
		node    loom.NodeID
		service string
	}
	touched := map[place]map[loom.TaskAction]bool{}
	for _, t := range c.plan.Tasks {
		at := place{t.Node, t.Service}
		if touched[at] == nil {
			touched[at] = map[loom.TaskAction]bool{}
		}
		touched[at][t.Action] = true
	}
	for _, n := range c.After.Nodes {
		own := touched[place{n.ID, ""}]
		line := ChangeLine{Change: "change", Object: "node", Name: n.Hostname, Node: n.Number, Because: "Prepared again for its services."}
		switch {
		case own[loom.ActionKeys]:
			line.Because = "Your SSH keys are put on it."
		case c.Kind == loom.ChangeRepair:
			c.repairLine(&line, n.ID)
		}
		if own != nil || c.Kind == loom.ChangeRepair && c.asks(n.ID, "") {
			list.add(line)
		}
		for _, name := range n.Services {
			// A new service without actions comes as well.
			if actions := touched[place{n.ID, name}]; actions != nil || slices.Contains(c.Services, name) {
				list.add(c.onService(n, name, actions))
			}
		}
	}
	return nil
}

// config lists the values of the config that become other ones.
func (l *changeList) config(c *change) {
	if !c.SetsConfig {
		return
	}
	first := len(l.lines)
	l.documents("config", c.of.configFrom, c.Before.Config, c.After.Config, c.secrets())
	for i := range l.lines[first:] {
		if line := &l.lines[first+i]; c.Input.setsConfig(line.Name) {
			line.Because = "" // the request says so
		}
	}
}

// setsConfig reports whether a request itself changes what a JSON pointer names in the config.
func (in *PreviewInput) setsConfig(pointer string) bool {
	patch := in.Change.ConfigPatch
	if in.Configure != nil {
		if in.Configure.ConfigPatch == nil {
			return true
		}
		patch = in.Configure.ConfigPatch
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		value, there := patch[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		if !there {
			return false
		}
		inner, deeper := value.(map[string]any)
		if !deeper {
			return true
		}
		patch = inner
	}
	return true
}

// secrets are the secret keys of the config before or after.
func (c *change) secrets() *loom.SecretKeys {
	return loom.SecretKeysOf(c.Before.Services, c.After.Services)
}

// documents lists where two JSON documents differ; secrets are what else is secret in them
// than what looks so.
func (l *changeList) documents(object, because string, before, after map[string]any, secrets *loom.SecretKeys) {
	c := comparison{most: maxChanges - len(l.lines)}
	c.compare(secrets, false, before, after, true, true)
	for _, change := range c.found {
		change.Object, change.Because = object, because
		l.lines = append(l.lines, change)
	}
	l.all += c.all
}

// onService says what a set of actions does to one service on one node.
func (c *change) onService(n loom.Node, name string, actions map[loom.TaskAction]bool) ChangeLine {
	line := ChangeLine{Change: "change", Object: "service", Name: name, Node: n.Number}
	state := func(to loom.ServiceState) {
		if from := n.ServiceStates[name]; from != "" {
			line.Old = string(from)
		}
		line.New = string(to)
	}
	start, stop := actions[loom.ActionStart], actions[loom.ActionStop]
	// A retry may have before it what an earlier operation never started.
	runs := c.Followed == nil || n.ServiceStates[name] == loom.ServiceStarted
	rebooted := c.Action == loom.RepairReboot && c.asks(n.ID, "") && n.ServiceStates[name] == loom.ServiceStarted
	switch {
	case runs && (start && stop || start && actions[loom.ActionConfigure] || start && rebooted):
		line.Change = "restart"
	case start:
		state(loom.ServiceStarted)
	case stop:
		state(loom.ServiceStopped)
	}
	if c.of.reason != nil {
		c.of.reason(c, &line, actions)
	}
	return line
}

// dependsOn reports whether a service depends on another at runtime, directly or not.
func dependsOn(services map[string]loom.Service, name, on string) bool {
	seen := map[string]bool{}
	var walk func(name string) bool
	walk = func(name string) bool {
		if seen[name] {
			return false
		}
		seen[name] = true
		runtime := services[name].Dependencies.Runtime
		for _, wanted := range slices.Concat(runtime.Requires, runtime.Uses) {
			for _, other := range sortedNames(services) {
				if other != wanted && !slices.Contains(services[other].Dependencies.Provides, wanted) {
					continue
				}
				if other == on || walk(other) {
					return true
				}
			}
		}
		return false
	}
	return walk(name)
}

// comparison finds what leads from one JSON document to another, by JSON pointer
// (RFC 6901) in the order of keys: the first ones up to most, and how many there are.
// Values of keys that look secret are masked, but that they differ is said.
type comparison struct {
	most  int
	found []ChangeLine
	all   int
	at    loom.JSONPath
}

func (c *comparison) compare(secrets *loom.SecretKeys, secret bool, old, new any, had, has bool) {
	if had && has {
		a, both := old.(map[string]any)
		b, too := new.(map[string]any)
		if both && too {
			keys := slices.Collect(maps.Keys(a))
			for key := range b {
				if _, known := a[key]; !known {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			for _, key := range keys {
				oldItem, inOld := a[key]
				newItem, inNew := b[key]
				c.at.Key(key)
				c.compare(secrets.Below(key), secret || secrets.Hides(key), oldItem, newItem, inOld, inNew)
				c.at.Up()
			}
			return
		}
		if sameJSON(old, new) {
			return
		}
	}
	if c.all++; len(c.found) >= c.most {
		return
	}
	change := ChangeLine{Name: c.at.Pointer()}
	switch {
	case !had:
		change.Change, change.New = "create", masked(secrets, secret, new)
	case !has:
		change.Change, change.Old = "remove", masked(secrets, secret, old)
	default:
		change.Change, change.Old, change.New = "change", masked(secrets, secret, old), masked(secrets, secret, new)
	}
	c.found = append(c.found, change)
}

func masked(secrets *loom.SecretKeys, secret bool, value any) any {
	if object, isObject := value.(map[string]any); isObject && !secret {
		return secrets.Mask(object)
	}
	if !secret {
		return loom.MaskSecrets(value)
	}
	shown, _ := loom.MaskSecrets(map[string]any{"secret": value}).(map[string]any)
	return shown["secret"]
}

// sameJSON compares values as JSON means them: 1, 1.0 and a Go 1 are one number.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameJSON)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameJSON)
	}
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, isNumber := number(a)
	y, too := number(b)
	return isNumber && too && x == y
}

// number returns the value of a number, however it is held. What float64 cannot
// tell apart is told apart by its text before.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") && len(v) > 15 {
			return 0, false
		}
		f, err := strconv.ParseFloat(v.String(), 64)
		return f, err == nil
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}

// document is a value as the JSON object it is sent as.
func document(v any) map[string]any {
	data, err := json.Marshal(v)
	if err != nil {
		return nil // catalog entries were JSON before
	}
	c := json.NewDecoder(bytes.NewReader(data))
	c.UseNumber()
	out := map[string]any{}
	if err := c.Decode(&out); err != nil {
		return nil
	}
	return out
}

// paths names what differs, for the audit, where values would be too much.
func paths(before, after map[string]any) []string {
	var l changeList
	l.documents("", "", before, after, nil)
	names := make([]string, 0, len(l.lines))
	for _, c := range l.lines {
		names = append(names, c.Name)
	}
	return names
}

// showLayout shows what becomes of the layout: config, machines, then services by node.
func showLayout(v *PreviewView, c *change, list *changeList) error {
	v.Layout = layoutOf(c.After.Nodes)
	diff, err := planner.Compare(c.Before.layout(), c.plannedLayout(), c.plan, c.reinstalled()...)
	if err != nil {
		return err
	}
	v.NodesAdded, v.NodesReplaced, v.NodesRemoved, v.RemovedNodes = len(diff.Made), len(diff.Replaced), len(diff.Removed), c.removed()
	v.Changed = c.Services
	v.After.Nodes += c.more()
	for _, n := range v.RemovedNodes {
		if n.State != loom.NodeDeleted {
			v.After.Nodes--
		}
	}
	list.config(c)
	if c.After.Template != nil {
		list.documents("template", "", document(c.Before.Template), document(c.After.Template), nil)
	}
	list.machines("create", diff.Made)
	list.machines("replace", diff.Replaced)
	list.machines("remove", diff.Removed)
	for _, n := range c.After.Nodes {
		if c.resumes(n.ID, "") {
			list.add(ChangeLine{Change: "change", Object: "node", Name: n.Hostname, Node: n.Number, Because: "An earlier operation did not make it ready."})
		}
	}
	list.changedServices(c, diff)
	told := map[string]bool{}
	for _, s := range diff.Services {
		told[s.Service] = told[s.Service] || s.Change == "configure"
	}
	for _, name := range sortedNames(told) {
		if told[name] {
			v.Reconfigured = append(v.Reconfigured, name)
		}
	}
	return nil
}

func (l *changeList) machines(word string, machines []planner.MachineChange) {
	for _, m := range machines {
		l.add(ChangeLine{Change: word, Object: "node", Name: m.Hostname, Node: m.Number, Because: m.Because})
	}
}

// changedServices lists services by node: those of whole nodes that come and go, and
// what happens to others. One without any action comes and goes as well.
func (l *changeList) changedServices(c *change, diff planner.Difference) {
	said := map[loom.NodeID][]planner.ServiceChange{}
	for _, s := range diff.Services {
		said[s.Node] = append(said[s.Node], s)
	}
	c.diffNodes(func(before, after *loom.Node) {
		switch {
		case before == nil:
			l.services("create", after, after.Services)
			return
		case after == nil:
			l.services("remove", before, before.Services)
			return
		}
		for _, s := range said[after.ID] {
			l.add(c.serviceLine(before, s))
		}
		for _, name := range slices.Concat(before.Services, after.Services) {
			had, has := slices.Contains(before.Services, name), slices.Contains(after.Services, name)
			if had == has || slices.ContainsFunc(said[after.ID], func(c planner.ServiceChange) bool { return c.Service == name }) {
				continue
			}
			word := map[bool]string{true: "remove", false: "create"}[had]
			l.add(ChangeLine{Change: word, Object: "service", Name: name, Node: after.Number, Because: "It defines no action for that, so nothing runs."})
		}
	})
}

func (l *changeList) services(word string, n *loom.Node, names []string) {
	for _, name := range names {
		l.add(ChangeLine{Change: word, Object: "service", Name: name, Node: n.Number})
	}
}

// unfinished is the reason why a repair changes what it was not asked for.
const unfinished = "An earlier operation did not finish it; it should run."

// serviceLine returns a change of a service as a line.
func (c *change) serviceLine(n *loom.Node, s planner.ServiceChange) ChangeLine {
	line := ChangeLine{Change: "change", Object: "service", Name: s.Service, Node: s.Number, Because: s.Because}
	state := func(to loom.ServiceState) {
		if from := n.ServiceStates[s.Service]; from != "" {
			line.Old = string(from)
		}
		line.New = string(to)
	}
	switch s.Change {
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
		if s.Effect == planner.Restarts {
			line.Change = "restart"
		}
	}
	if c.resumes(s.Node, s.Service) {
		line.Because = unfinished
	}
	if s.Change == "upgrade" {
		line.Because = ""
		if was, is := c.Before.Services[s.Service].Version, c.After.Services[s.Service].Version; was != is {
			line.Old, line.New = was, is
		}
		if files := c.Files[s.Service]; len(files) > 0 {
			line.Because = "Newer files: " + strings.Join(files, ", ") + "."
		}
	}
	return line
}

// reconfigures names the services that are configured again.
func (v *PreviewView) reconfigures() string {
	if len(v.Reconfigured) == 0 {
		return ""
	}
	return ", configures " + strings.Join(v.Reconfigured, ", ") + " again"
}
