package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/catalog"
	"loom/app/lenient"
	"loom/app/loom"
	"loom/solver"
)

// question is a problem that loom solve has read: input for a new cluster, or,
// where there are nodes, cluster with services to add and to remove.
type question struct {
	input       solver.Input
	cluster     solver.Cluster
	add, remove []string
	machines    *int // of the request, nil when absent
	given       []string
	limit       time.Duration
}

// mostListed bounds the nodes of an answer, which has to fit into memory. The limit
// of a server is another one and does not apply.
const mostListed = 1_000_000

// readQuestion reads a problem. Errors are loom.Invalid and name line and column.
func readQuestion(body []byte) (*question, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return nil, placed(body, err)
	}
	r := questionReader{o: o}
	q := r.read()
	errs := append(slices.Clone(o.Errors()), r.errs...)
	if len(errs) == 0 {
		return q, nil
	}
	return nil, &loom.Error{Kind: loom.Invalid, Message: "The problem cannot be read.", Fields: withPlaces(body, errs)}
}

// placed returns errors that say no place the beginning of the document.
func placed(body []byte, err error) error {
	e := loom.AsError(err)
	if len(e.Fields) > 0 {
		e.Fields = withPlaces(body, e.Fields)
		return e
	}
	if !strings.Contains(e.Message, "line ") {
		return loom.NewError(loom.Invalid, "line 1, column 1: %s", e.Message)
	}
	return err
}

// withPlaces says at the beginning of each error where its field stands.
func withPlaces(body []byte, errs []loom.FieldError) []loom.FieldError {
	errs = loom.BoundFields(errs, 0)
	paths := make([]string, len(errs))
	for i, f := range errs {
		paths[i] = f.Field
	}
	placed := make([]loom.FieldError, len(errs))
	for i, offset := range loom.JSONPlaces(body, paths) {
		line, column := loom.TextPosition(body, offset)
		placed[i] = loom.FieldError{Field: errs[i].Field, Message: fmt.Sprintf("line %d, column %d: %s", line, column, errs[i].Message)}
	}
	return placed
}

type questionReader struct {
	o    *lenient.Object
	errs []loom.FieldError
}

func (r *questionReader) fail(field, format string, args ...any) {
	r.errs = append(r.errs, loom.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (r *questionReader) read() *question {
	q := &question{limit: solveLimit, add: r.o.Texts("add"), remove: r.o.Texts("remove")}
	in := &q.input
	in.Catalog = map[string]loom.Service{}
	if !r.o.Has("template") {
		r.fail("template", "Set the template, as its catalog body.")
	} else if t, ok := r.entry(loom.KindTemplate, "template", r.o.Free("template")).(*loom.Template); ok {
		in.Template = *t
	}
	request := r.o.Object("request")
	in.Services = request.Texts("services")
	in.HardwareType, in.ImageType = request.Text("hardwaretype"), request.Text("imagetype")
	if p, ok := r.entry(loom.KindProvider, "provider", r.o.Free("provider")).(*loom.Provider); ok {
		in.Provider = p.Name
	}
	in.Provider = cmp.Or(in.Provider, request.Text("provider"), in.Template.Defaults.Provider)
	for i, body := range r.o.Array("services") {
		if s, ok := r.listed(loom.KindService, "services", i, body).(*loom.Service); ok {
			in.Catalog[s.Name] = *s
		}
	}
	for i, body := range r.o.Array("hardwaretypes") {
		if h, ok := r.listed(loom.KindHardwareType, "hardwaretypes", i, body).(*loom.HardwareType); ok {
			fitsAll(&h.ProviderMap, in.Provider, "flavor", h.Name)
			in.HardwareTypes = append(in.HardwareTypes, *h)
		}
	}
	for i, body := range r.o.Array("imagetypes") {
		if t, ok := r.listed(loom.KindImageType, "imagetypes", i, body).(*loom.ImageType); ok {
			fitsAll(&t.ProviderMap, in.Provider, "image", t.Name)
			in.ImageTypes = append(in.ImageTypes, *t)
		}
	}
	r.settings(request, *in)
	if q.machines = request.IntPtr("numMachines"); q.machines != nil {
		in.Machines = *q.machines
		if in.Machines > mostListed {
			request.Fail("numMachines", "%d nodes are too many to list; ask for %d at most.", in.Machines, mostListed)
		}
	}
	if ms := r.o.Int64("limit_ms"); ms < 0 || ms > 24*time.Hour.Milliseconds() {
		r.fail("limit_ms", "The limit is %d; it takes milliseconds from 1 to a day.", ms)
	} else if ms > 0 {
		q.limit = time.Duration(ms) * time.Millisecond
	}
	r.nodes(q)
	return q
}

// settings checks the config that a request comes to. One without config may leave out what
// services need: it asks for a layout.
func (r *questionReader) settings(request *lenient.Object, in solver.Input) {
	names := in.Services
	if len(names) == 0 {
		names = in.Template.Defaults.Services
	}
	chosen, config := map[string]loom.Service{}, map[string]any{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if s, there := in.Catalog[name]; there {
			chosen[name] = s
			config = loom.MergePatch(config, s.Defaults())
		}
	}
	config = loom.MergePatch(config, in.Template.Defaults.Config)
	if request.Has("configPatch") {
		config = loom.MergePatch(config, request.FreeObject("configPatch"))
	}
	if request.Has("config") {
		config = request.FreeObject("config")
	}
	check := loom.SettingsCheck{Services: chosen, Template: &in.Template, Partly: !request.Has("config") && !request.Has("configPatch")}
	for _, e := range check.Check(config) {
		r.fail("request."+e.Field, "%s", e.Message)
	}
}

// fitsAll makes a type that names no provider fit the given one.
func fitsAll(entries *map[string]map[string]string, provider, key, name string) {
	if len(*entries) == 0 {
		*entries = map[string]map[string]string{provider: {key: name}}
	}
}

// entry decodes a catalog body; nil for none, or for one that cannot be read.
func (r *questionReader) entry(kind loom.EntityKind, at string, body any) loom.Entry {
	if body == nil {
		return nil
	}
	if _, object := body.(map[string]any); !object {
		r.fail(at, "This must be an object, the catalog body of the %s.", kind.Word())
		return nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		r.fail(at, "%v", err)
		return nil
	}
	entry, err := catalog.Decode(kind, text)
	if entry == nil {
		r.fail(at, "%s", loom.AsError(err).Message)
		return nil
	}
	if err != nil {
		for _, f := range loom.AsError(err).Fields {
			if matters(entry, f) {
				r.fail(at+"."+f.Field, "%s", f.Message)
			}
		}
	}
	return entry
}

// matters tells mistakes of reading from rules of the catalog that are nothing to
// the solver: links, actions, the spelling of names. A maximum below a minimum is
// no mistake here but a reason for a no.
func matters(entry loom.Entry, f loom.FieldError) bool {
	return !slices.Contains(entry.Validate(), f) || strings.HasPrefix(f.Message, "A quantity cannot be negative") ||
		f.Field == "constraints.size.min"
}

func (r *questionReader) listed(kind loom.EntityKind, list string, i int, body any) loom.Entry {
	at := list + "[" + strconv.Itoa(i) + "]"
	entry := r.entry(kind, at, body)
	if body == nil {
		r.fail(at, "This is null; give the catalog body of a %s.", kind.Word())
	}
	if entry != nil && entry.Meta().Name == "" {
		r.fail(at+".name", "Name the %s.", kind.Word())
	}
	return entry
}

// nodes reads the machines of a cluster that exists. They are put in the order of
// their ids, numbers in them counted: that stands for the node numbers.
func (r *questionReader) nodes(q *question) {
	ids := map[string]bool{}
	r.o.EachOf("nodes", func(i int, n *lenient.Object) {
		node := solver.Node{ID: n.Text("id"), NodeLayout: loom.NodeLayout{
			HardwareType: n.Text("hardwaretype"), ImageType: n.Text("imagetype"), Services: distinctSorted(n.Texts("services"))}}
		switch {
		case node.ID == "":
			n.Fail("id", "Give the node an id of its own.")
		case ids[node.ID]:
			n.Fail("id", "The id %s is given twice.", node.ID)
		}
		ids[node.ID] = true
		q.given = append(q.given, node.ID)
		q.cluster.Nodes = append(q.cluster.Nodes, node)
	})
	if len(q.cluster.Nodes) == 0 {
		for _, list := range []string{"add", "remove"} {
			if len(r.o.Texts(list)) > 0 {
				r.fail(list, "There are no nodes; list those of the cluster in nodes.")
			}
		}
		return
	}
	slices.SortStableFunc(q.cluster.Nodes, func(a, b solver.Node) int { return compareNatural(a.ID, b.ID) })
	q.cluster.Input = q.input
	q.cluster.Input.HardwareType, q.cluster.Input.ImageType = "", ""
}

// asGiven puts nodes back into the order of the question.
func (q *question) asGiven(nodes []solver.Node) []solver.Node {
	at := map[string]int{}
	for i, id := range q.given {
		at[id] = i
	}
	out := slices.Clone(nodes)
	slices.SortFunc(out, func(a, b solver.Node) int { return at[a.ID] - at[b.ID] })
	return out
}

// inputAfter asks for a new cluster with the services that the changed one has.
func (q *question) inputAfter() solver.Input {
	in := q.cluster.Input
	in.Template.Defaults = loom.Defaults{}
	in.Services = slices.Clone(q.add)
	have := map[string]bool{}
	for _, h := range in.HardwareTypes {
		have["h"+h.Name] = true
	}
	for _, t := range in.ImageTypes {
		have["i"+t.Name] = true
	}
	for _, n := range q.cluster.Nodes {
		for _, s := range n.Services {
			if !slices.Contains(q.remove, s) {
				in.Services = append(in.Services, s)
			}
		}
		// Types that nodes have exist, whether the catalog is complete or not.
		if !have["h"+n.HardwareType] {
			have["h"+n.HardwareType] = true
			in.HardwareTypes = append(in.HardwareTypes, loom.HardwareType{Base: loom.Base{Name: n.HardwareType},
				ProviderMap: map[string]map[string]string{in.Provider: {"flavor": n.HardwareType}}})
		}
		if !have["i"+n.ImageType] {
			have["i"+n.ImageType] = true
			in.ImageTypes = append(in.ImageTypes, loom.ImageType{Base: loom.Base{Name: n.ImageType},
				ProviderMap: map[string]map[string]string{in.Provider: {"image": n.ImageType}}})
		}
	}
	return in
}

// compareNatural orders texts with the numbers in them counted: n2 before n10.
func compareNatural(a, b string) int {
	for x, y := a, b; x != "" && y != ""; {
		p, restX := chunk(x)
		q, restY := chunk(y)
		if isDigit(p[0]) && isDigit(q[0]) {
			m, n := strings.TrimLeft(p, "0"), strings.TrimLeft(q, "0")
			if d := cmp.Or(len(m)-len(n), strings.Compare(m, n)); d != 0 {
				return d
			}
		} else if d := strings.Compare(p, q); d != 0 {
			return d
		}
		x, y = restX, restY
		if x == "" || y == "" {
			if d := len(x) - len(y); d != 0 {
				return d
			}
		}
	}
	return strings.Compare(a, b)
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// chunk cuts off a run of digits, or of anything else.
func chunk(s string) (head, rest string) {
	i := 1
	for i < len(s) && isDigit(s[i]) == isDigit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}
