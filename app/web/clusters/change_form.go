package clusters

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
)

// kindScale is the kind of the form that becomes an expand or a shrink, by the number.
const kindScale = loom.ChangeKind("scale")

// changeForm is the form for a change of a cluster as it was sent, every value as
// text, so that nothing typed is lost.
type changeForm struct {
	Kind                                 loom.ChangeKind
	Service, Machines, For               string
	Nodes, Services, Remove, Skip, Dead  []string
	Hardware, Batch, MinHealthy          string
	OnFailure, Config, Reason, Operation string
	// Revision is a config that the cluster has had, which takes the place of Config.
	Revision string
	Restart  bool
	// Edit is the part of the form that is open from the start.
	Edit string
	// Do is a button that only looks again, Change a suggestion that was pressed.
	Do, Change string
}

func readChangeForm(v url.Values) changeForm {
	text := func(name string) string { return strings.TrimSpace(v.Get(name)) }
	return changeForm{
		Kind: loom.ChangeKind(v.Get("kind")), Service: v.Get("service"), Machines: text("numMachines"), For: v.Get("for"), Nodes: v["nodes"],
		Services: v["services"], Remove: v["removeServices"], Dead: v["dead"], Edit: v.Get("edit"), Skip: v["skip"], Hardware: text("hardwaretype"), Batch: text("batch"), MinHealthy: text("minHealthy"),
		OnFailure: text("onFailure"), Config: text("config"), Reason: text("reason"), Operation: v.Get("operation"), Revision: text("revision"), Restart: v.Get("restart") != "",
		Do: v.Get("do"), Change: v.Get("suggest"),
	}
}

// verb is the one that must be allowed for the form to be shown.
func (f *changeForm) verb() loom.ChangeKind {
	if f.Kind == kindScale {
		return loom.ChangeExpand
	}
	return f.Kind
}

// placedNodes are the nodes that count: those with a place in the cluster.
func placedNodes(v clusters.ClusterView) []loom.Node {
	return slices.DeleteFunc(slices.Clone(v.Nodes), func(n loom.Node) bool { return n.Leaving || n.State == loom.NodeDeleted })
}

// removable are the nodes that a shrink may name: members, and those that an earlier
// one left on their way out.
func removable(v clusters.ClusterView) []loom.Node {
	return slices.DeleteFunc(slices.Clone(v.Nodes), func(n loom.Node) bool { return n.State == loom.NodeDeleted })
}

// blank says in a sentence what a form must still be told before anything can be
// looked for, "" when it can.
func (f *changeForm) blank(v clusters.ClusterView) string {
	switch f.Kind {
	case kindScale:
		if have := len(placedNodes(v)); f.Machines == "" || f.Machines == strconv.Itoa(have) && !f.named() {
			return "Give more nodes than " + strconv.Itoa(have) + ", or fewer."
		}
	case loom.ChangeAddServices, loom.ChangeRemoveServices:
		if len(f.Services) == 0 {
			return "Choose services."
		}
	case loom.ChangeResize:
		if f.Hardware == "" {
			return "Choose a hardware type."
		}
	case loom.ChangeConfigure:
		if f.Revision == "" && (f.Config == "" || f.Config == configText(masked(v.Config))) {
			return "Nothing is changed yet."
		}
	case loom.ChangeRepair:
		if len(f.Nodes) == 0 {
			return "Choose the nodes to make anew."
		}
	}
	return ""
}

// named reports whether the ticked nodes count: they were ticked for this number.
func (f *changeForm) named() bool {
	return f.For != "" && f.For == f.Machines && len(f.Nodes) > 0
}

// leave ticks nodes and sets the number that is left without them.
func (f *changeForm) leave(v clusters.ClusterView, nodes []string) {
	left := 0
	for _, n := range placedNodes(v) {
		if !slices.Contains(nodes, string(n.ID)) {
			left++
		}
	}
	f.Nodes, f.Machines = nodes, strconv.Itoa(left)
	f.For = f.Machines
}

// input is the request that the form makes, with what cannot be read at all.
func (f *changeForm) input(v clusters.ClusterView) (clusters.PreviewInput, []loom.FieldError) {
	in := clusters.PreviewInput{Kind: f.Kind, Cluster: v.ID, Service: f.Service}
	in.Change.OnFailure = f.OnFailure
	var errs []loom.FieldError
	number := func(field, text, remedy string) int {
		n, err := loom.ParseNumber(text)
		if text != "" && (err != nil || n < 0) {
			errs = append(errs, loom.FieldError{Field: field, Message: remedy})
		}
		return max(n, 0)
	}
	switch f.Kind {
	case kindScale:
		total := number("numMachines", f.Machines, "Give a whole number, such as 3.")
		if len(errs) == 0 {
			errs = f.scale(v, total, &in)
		}
	case loom.ChangeConfigure:
		in.Configure, errs = f.configure(v)
	case loom.ChangeAddServices:
		in.Services = f.Services
	case loom.ChangeRemoveServices, loom.ChangeUpgrade, loom.ChangeResize:
		in.Change.Services, in.Change.HardwareType = f.Services, f.Hardware
		in.Change.Batch = number("batch", f.Batch, "Give how many nodes are changed at a time, such as 1.")
		if f.MinHealthy != "" {
			healthy := number("minHealthy", f.MinHealthy, "Give how many nodes of each service must be up, such as 2.")
			in.Change.MinHealthy = &healthy
		}
	case loom.ChangeRepair:
		in.Change.Nodes = nodeIDs(f.Nodes)
	case loom.ChangeRollback, loom.ChangeRetry:
		in.Change.Operation = number("operation", f.Operation, "Name the operation by its number.")
		in.Change.Reason = f.Reason
		for _, text := range f.Skip {
			in.Change.Skip = append(in.Change.Skip, number("skip", text, "Name tasks by their numbers."))
		}
		if f.Kind == loom.ChangeRetry {
			errs = append(errs, f.mend(v, &in)...)
		}
	}
	return in, errs
}

// scale makes the number an expand or a shrink.
func (f *changeForm) scale(v clusters.ClusterView, total int, in *clusters.PreviewInput) []loom.FieldError {
	have := len(placedNodes(v))
	in.Kind, in.Change.Machines = loom.ChangeExpand, total
	switch {
	case f.Machines == "" || total == have && !f.named():
		return []loom.FieldError{{Field: "numMachines", Message: fmt.Sprintf("The cluster has %d; give another number.", have)}}
	case total > have:
		return nil
	}
	in.Kind = loom.ChangeShrink
	if f.For == "" || f.For != f.Machines {
		return nil // Loom chooses
	}
	ticked := 0
	for _, n := range placedNodes(v) {
		if slices.Contains(f.Nodes, string(n.ID)) {
			ticked++
		}
	}
	if ticked != have-total {
		return []loom.FieldError{{Field: "nodes", Message: fmt.Sprintf("%d of %d nodes are left when %d leave, and %d are ticked: tick %d, or set the number to %d.",
			total, have, have-total, ticked, have-total, have-ticked)}}
	}
	in.Change.Machines, in.Change.Nodes = 0, nodeIDs(f.Nodes)
	in.Change.Dead = slices.DeleteFunc(nodeIDs(f.Dead), func(id loom.NodeID) bool { return !slices.Contains(in.Change.Nodes, id) })
	return nil
}

func nodeIDs(texts []string) []loom.NodeID {
	ids := make([]loom.NodeID, len(texts))
	for i, text := range texts {
		ids[i] = loom.NodeID(text)
	}
	return ids
}

// configure is the change of the config: what differs from what was shown, so that
// secrets that were hidden stay as they are.
func (f *changeForm) configure(v clusters.ClusterView) (*clusters.ConfigureInput, []loom.FieldError) {
	if f.Revision != "" {
		number, err := loom.ParseNumber(f.Revision)
		if err != nil {
			return &clusters.ConfigureInput{}, []loom.FieldError{{Field: "revision", Message: "Name the config by its number, such as 2."}}
		}
		return &clusters.ConfigureInput{Restart: f.Restart, Revision: &number}, nil
	}
	in := &clusters.ConfigureInput{Restart: f.Restart, ConfigPatch: map[string]any{}}
	given, problem := parseConfig(f.Config)
	if problem != "" {
		return in, []loom.FieldError{{Field: "config", Message: problem}}
	}
	shown, _ := loom.MaskSecrets(v.Config).(map[string]any)
	in.ConfigPatch = loom.DiffPatch(shown, given)
	if strings.Contains(configText(in.ConfigPatch), loom.Redacted) {
		return in, []loom.FieldError{{Field: "config", Message: "A value that is hidden (" + loom.Redacted + ") was moved or copied; write the value itself."}}
	}
	return in, nil
}

// changeSuggestion packs what a suggestion changes into one field of the form.
func changeSuggestion(su loom.Suggestion) (name, value string) {
	if len(su.Nodes)+len(su.Services) == 0 {
		return page.SuggestionValue(su)
	}
	v := url.Values{}
	for _, n := range su.Nodes {
		v.Add("nodes", string(n))
	}
	for _, service := range su.Services {
		v.Add("services", service)
	}
	if su.HardwareType != "" {
		v.Set("hardwaretype", su.HardwareType)
	}
	return "form", v.Encode()
}

// apply changes the form as a pressed suggestion says.
func (f *changeForm) apply(v clusters.ClusterView, suggestion string) error {
	name, value, _ := strings.Cut(suggestion, "=")
	q := url.Values{name: {value}}
	if name == "form" {
		var err error
		if q, err = url.ParseQuery(value); err != nil {
			return errors.Join(loom.NewError(loom.Invalid, "This suggestion could not be read."), err)
		}
	}
	if q.Has("numMachines") {
		f.Machines, f.For, f.Nodes = q.Get("numMachines"), "", nil
	}
	if q.Has("hardwaretype") {
		f.Hardware = q.Get("hardwaretype")
	}
	if q.Has("services") {
		f.Services = q["services"]
	}
	if q.Has("nodes") {
		f.Nodes = q["nodes"]
		if f.Kind == kindScale {
			f.leave(v, f.Nodes)
		}
	}
	for _, service := range q["add"] {
		if !slices.Contains(f.Services, service) {
			f.Services = append(f.Services, service)
		}
	}
	f.Services = slices.DeleteFunc(f.Services, func(name string) bool { return slices.Contains(q["remove"], name) })
	return nil
}
