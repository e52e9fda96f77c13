package clusters

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/clusterview"
)

// kindScale is the kind of the form that becomes an expand or a shrink, by the number.
const kindScale = loom.ChangeKind("scale")

// changeForm is the form for a change of a cluster: its document is the body of the request,
// and Config the text that becomes the patch of the config there.
type changeForm struct {
	form.Edit
	Kind                       loom.ChangeKind
	Service, Operation, Config string
	// For is the number of nodes for which nodes were ticked.
	For string
	// Revision is a config that the cluster has had, which takes the place of Config.
	Revision string
	// Open is the part of the form that is open from the start.
	Open string
	// Do is a button that only looks again, Change a suggestion that was pressed.
	Do, Change string
	settings   settingsForm
}

// changeFields are the fields of the forms, by their names in the bodies of the requests.
var changeFields = form.Of(
	requestField("numMachines"), form.Picker{Path: form.At("nodes")}, form.Picker{Path: form.At("dead")}, form.Picker{Path: form.At("services")}, form.Picker{Path: form.At("removeServices")}, form.Picker{Path: form.At("entries")},
	requestField("hardwaretype"), requestField("batch"), requestField("minHealthy"), requestField("onFailure"), form.Picker{Path: form.At("skip")}, requestField("reason"), requestField("how"),
	form.Reader(func(in *form.Input) { text, _ := in.Get("restart"); in.Doc.Set(form.At("restart"), text != "") }),
)

func readChangeForm(v url.Values) changeForm {
	f := changeForm{Edit: changeFields.Over(struct{}{}), Kind: loom.ChangeKind(v.Get("kind")), Service: v.Get("service"), Operation: v.Get("operation"),
		Config: strings.TrimSpace(v.Get("config")), For: v.Get("for"), Revision: strings.TrimSpace(v.Get("revision")), Open: v.Get("edit"), Do: v.Get("do"), Change: v.Get("suggest")}
	f.settings = readSettings(v, f.Do)
	f.Fill(v)
	return f
}

// hidden are the fields that tell what the form is about.
func (f *changeForm) hidden(v clusters.ClusterView) []clusterview.HiddenField {
	all := []clusterview.HiddenField{{Name: "kind", Value: string(f.Kind)}, {Name: "cluster", Value: v.ID.String()}, {Name: "service", Value: f.Service}, {Name: "operation", Value: f.Operation}, {Name: "revision", Value: f.Revision}}
	return slices.DeleteFunc(all, func(h clusterview.HiddenField) bool { return h.Value == "" })
}

// of returns a text or number of the request as text, list a list of it.
func (f *changeForm) of(name string) string     { return f.Doc.Text(form.At(name)) }
func (f *changeForm) list(name string) []string { return f.Doc.Texts(form.At(name)) }

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
		if have := len(placedNodes(v)); f.of("numMachines") == "" || f.of("numMachines") == strconv.Itoa(have) && !f.named() {
			return "Enter a number other than " + strconv.Itoa(have) + "."
		}
	case loom.ChangeAddServices, loom.ChangeRemoveServices:
		if len(f.list("services")) == 0 {
			return "Choose services."
		}
	case loom.ChangeResize:
		if f.of("hardwaretype") == "" {
			return "Choose a hardware type."
		}
	case loom.ChangeConfigure:
		if f.Revision == "" && (f.Config == "" || f.Config == configText(maskedConfig(v))) {
			return "Change a setting."
		}
	case loom.ChangeRepair:
		if len(f.list("nodes")) == 0 {
			return "Choose the nodes to repair."
		}
	}
	return ""
}

// named reports whether the ticked nodes count: they were ticked for this number.
func (f *changeForm) named() bool {
	return f.For != "" && f.For == f.of("numMachines") && len(f.list("nodes")) > 0
}

// leave ticks nodes and sets the number that is left without them.
func (f *changeForm) leave(v clusters.ClusterView, nodes []string) {
	left := 0
	for _, n := range placedNodes(v) {
		if !slices.Contains(nodes, string(n.ID)) {
			left++
		}
	}
	f.For = strconv.Itoa(left)
	f.Doc.Set(form.At("nodes"), nodes)
	f.Doc.Set(form.At("numMachines"), f.For)
}

// input is the request that the form makes, read as the API reads its body. Invalid, with
// what cannot be read.
func (f *changeForm) input(v clusters.ClusterView) (clusters.PreviewInput, error) {
	kind, body := f.Kind, f.Edit
	body.Doc = f.Doc.Clone()
	var errs []loom.FieldError
	switch kind {
	case kindScale:
		kind, errs = f.scale(v, body.Doc)
	case loom.ChangeConfigure:
		errs = f.configure(v, body.Doc)
	case loom.ChangeUpdate:
		var entries []any
		for _, value := range f.list("entries") {
			kind, name, _ := strings.Cut(value, ":")
			entries = append(entries, map[string]any{"kind": kind, "name": name})
		}
		body.Doc.Set(form.At("entries"), entries)
	case loom.ChangeRetry:
		if f.Config != "" && f.Config != configText(maskedConfig(v)) {
			errs = f.configure(v, body.Doc)
		}
	}
	in, err := form.DecodeDoc(body, func(data []byte) (clusters.PreviewInput, error) { return wire.ReadChange(kind, data) })
	in.Cluster, in.Service = v.ID, f.Service
	if kind == loom.ChangeRollback || kind == loom.ChangeRetry {
		if in.Change.Operation, _ = loom.ParseNumber(f.Operation); in.Change.Operation < 0 || in.Change.Operation == 0 && f.Operation != "" {
			errs = append(errs, loom.FieldError{Field: "operation", Message: "Name the operation by its number."})
		}
	}
	if len(errs) > 0 {
		return in, loom.InvalidFields(append(errs, loom.AsError(err).Fields...))
	}
	return in, err
}

// scale makes the number an expand or a shrink.
func (f *changeForm) scale(v clusters.ClusterView, body *form.Doc) (loom.ChangeKind, []loom.FieldError) {
	have, text := len(placedNodes(v)), f.of("numMachines")
	total, err := strconv.Atoi(text)
	switch {
	case text != "" && (err != nil || total < 0):
		body.Delete(form.At("numMachines"))
		return loom.ChangeExpand, []loom.FieldError{{Field: "numMachines", Message: "Enter a whole number, such as 3."}}
	case text == "" || total == have && !f.named():
		return loom.ChangeExpand, []loom.FieldError{{Field: "numMachines", Message: fmt.Sprintf("The cluster has %d. Enter another number.", have)}}
	case total > have:
		return loom.ChangeExpand, nil
	}
	nodes := f.list("nodes")
	if f.For == "" || f.For != text { // Loom chooses
		body.Delete(form.At("nodes"))
		body.Delete(form.At("dead"))
		return loom.ChangeShrink, nil
	}
	ticked := 0
	for _, n := range placedNodes(v) {
		if slices.Contains(nodes, string(n.ID)) {
			ticked++
		}
	}
	if ticked != have-total {
		return loom.ChangeShrink, []loom.FieldError{{Field: "nodes", Message: fmt.Sprintf("%d of %d nodes are left when %d leave, and %d are ticked: tick %d, or set the number to %d.",
			total, have, have-total, ticked, have-total, have-ticked)}}
	}
	body.Delete(form.At("numMachines"))
	body.Set(form.At("dead"), slices.DeleteFunc(f.list("dead"), func(id string) bool { return !slices.Contains(nodes, id) }))
	return loom.ChangeShrink, nil
}

// configure is the change of the config: what differs from what was shown, so that
// secrets that were hidden stay as they are.
func (f *changeForm) configure(v clusters.ClusterView, body *form.Doc) []loom.FieldError {
	if f.Revision != "" {
		number, err := loom.ParseNumber(f.Revision)
		if err != nil {
			return []loom.FieldError{{Field: "revision", Message: "Name the config by its number, such as 2."}}
		}
		body.Set(form.At("revision"), number)
		return nil
	}
	given, problem := parseConfig(f.Config)
	if problem != "" {
		return []loom.FieldError{{Field: "config", Message: problem}}
	}
	patch := loom.DiffPatch(maskedConfig(v), given)
	if strings.Contains(configText(patch), loom.Redacted) {
		return []loom.FieldError{{Field: "config", Message: "A value that is hidden (" + loom.Redacted + ") was moved or copied; write the value itself."}}
	}
	if f.Kind == loom.ChangeConfigure || len(patch) > 0 {
		body.Set(form.At("configPatch"), patch)
	}
	if f.Kind == loom.ChangeConfigure && restarts(v, given) {
		body.Set(form.At("restart"), true)
	}
	return nil
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
		f.For = ""
		f.Doc.Set(form.At("numMachines"), q.Get("numMachines"))
		f.Doc.Delete(form.At("nodes"))
	}
	if q.Has("hardwaretype") {
		f.Doc.Set(form.At("hardwaretype"), q.Get("hardwaretype"))
	}
	services := f.list("services")
	if q.Has("services") {
		services = q["services"]
	}
	if nodes := q["nodes"]; len(nodes) > 0 {
		f.Doc.Set(form.At("nodes"), nodes)
		if f.Kind == kindScale {
			f.leave(v, nodes)
		}
	}
	for _, service := range q["add"] {
		if !slices.Contains(services, service) {
			services = append(services, service)
		}
	}
	f.Doc.Set(form.At("services"), slices.DeleteFunc(services, func(name string) bool { return slices.Contains(q["remove"], name) }))
	return nil
}
