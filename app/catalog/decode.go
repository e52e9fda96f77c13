package catalog

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/lenient"
	"loom/app/loom"
)

// Decode reads an entry of a kind the way clients of the predecessor write it
// and checks its shape. What it gives is complete: what
// an answer always holds is there. Errors are Invalid, with the
// names of all wrong fields, or line and column of a syntax error.
func Decode(kind loom.EntityKind, body []byte) (loom.Entry, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return nil, err
	}
	entry, err := decodeObject(kind, o)
	if err != nil {
		return nil, err
	}
	return entry, loom.InvalidFields(shapeErrors(entry, o.Errors()))
}

// shapeErrors adds to the errors of reading those of the entry's own check,
// leaving out fields that could not even be read.
func shapeErrors(entry loom.Entry, found []loom.FieldError) []loom.FieldError {
	errs := slices.Clone(found)
	for _, e := range entry.Validate() {
		if !slices.ContainsFunc(found, func(f loom.FieldError) bool { return f.Field == e.Field }) {
			errs = append(errs, e)
		}
	}
	return errs
}

// decodeObject reads an entry; its field errors are in o. The error is set for
// an unknown kind only.
func decodeObject(kind loom.EntityKind, o *lenient.Object) (loom.Entry, error) {
	entry := loom.NewEntry(kind)
	if entry == nil {
		return nil, loom.NewError(loom.NotFound, "There is no catalog kind “%s”.", kind)
	}
	decoder.Into(o, entry)
	return entry, nil
}

// decoder reads the kinds by the tags of their fields, and by these functions what
// cannot be described: what older clients write, and bounds whose absence means something.
var decoder = lenient.Decoder{After: map[reflect.Type]func(o *lenient.Object, into any){
	reflect.TypeFor[loom.Base]():           after(func(o *lenient.Object, _ *loom.Base) { o.Int64("version") }), // must be a number, is overwritten
	reflect.TypeFor[loom.Dependencies]():   after(installScope),
	reflect.TypeFor[loom.ServiceAction]():  after(shellArguments),
	reflect.TypeFor[loom.Parameter]():      after(func(_ *lenient.Object, p *loom.Parameter) { p.Settle() }),
	reflect.TypeFor[loom.Template]():       after(nameParts),
	reflect.TypeFor[loom.Defaults]():       after(defaultServices),
	reflect.TypeFor[loom.SizeConstraint](): after(sizeBounds),
	reflect.TypeFor[loom.LeaseRule]():      after(leaseDurations),
	reflect.TypeFor[loom.PluginType]():     after(lowerActions),
	reflect.TypeFor[loom.FieldSchema]():    after(func(_ *lenient.Object, f *loom.FieldSchema) { f.Sensitive = f.IsSensitive() }),
}}

func after[T any](read func(o *lenient.Object, into *T)) func(*lenient.Object, any) {
	return func(o *lenient.Object, into any) { read(o, into.(*T)) }
}

// installScope reads the scope, which the phase of installing alone has.
func installScope(o *lenient.Object, d *loom.Dependencies) {
	d.Install.Scope = o.Object("install").Text("scope")
}

// shellArguments takes “data” for “args”, as old definitions of the shell automator say.
func shellArguments(_ *lenient.Object, a *loom.ServiceAction) {
	data, old := a.Fields["data"]
	if !old || a.Type != "shell" {
		return
	}
	if _, both := a.Fields["args"]; !both {
		a.Fields["args"] = data
	}
	delete(a.Fields, "data")
}

// nameParts refuses templates to extend, and parts to include, that have no name.
func nameParts(o *lenient.Object, t *loom.Template) {
	if t.Extends != nil && t.Extends.Name == "" {
		o.Fail("extends.name", "Name the template that this one extends, or leave extends out.")
	}
	if len(t.Includes) == 0 {
		return
	}
	read := 0
	for i, element := range o.Array("includes") {
		if _, ok := element.(map[string]any); !ok {
			continue
		}
		if t.Includes[read].Name == "" {
			o.Fail(fmt.Sprintf("includes[%d].name", i), "Name the partial template to include.")
		}
		read++
	}
}

// defaultServices takes services as names and as {"name", "config"}; the config
// of the latter goes to defaults.config under the service's name.
func defaultServices(o *lenient.Object, d *loom.Defaults) {
	d.Services = []string{}
	elements := o.Array("services")
	seen := make(map[string]bool, len(elements))
	for i, element := range elements {
		at := "services[" + strconv.Itoa(i) + "]"
		name := ""
		switch v := element.(type) {
		case nil:
			continue
		case map[string]any:
			object := lenient.FromMap(o.Path(at), v)
			name = object.Text("name")
			if name == "" {
				object.Fail("name", "Name the service.")
			}
			if config := object.FreeObject("config"); config != nil {
				d.Config[name] = config
			}
			for _, e := range object.Errors() {
				o.Fail(at, "%s", e.Message)
			}
		default:
			single := lenient.FromMap(o.Path(at), map[string]any{"name": v})
			name = single.Text("name")
			for _, e := range single.Errors() {
				o.Fail(at, "%s", e.Message)
			}
		}
		if name != "" && !seen[name] {
			seen[name] = true
			d.Services = append(d.Services, name)
		}
	}
}

// sizeBounds reads the size: 1 to unlimited where nothing is given. Zero in
// loom.SizeConstraint means "not given", so an explicit one is refused here.
func sizeBounds(o *lenient.Object, size *loom.SizeConstraint) {
	size.Min, size.Max = 1, loom.Unlimited
	bound := func(name string, to *int, zero string) {
		found := o.Found()
		n := o.IntPtr(name)
		if n == nil || o.Found() > found { // absent, or no number
			return
		}
		if *to = *n; *n == 0 {
			o.Fail(name, "%s", zero)
		}
	}
	bound("min", &size.Min, "A cluster has at least 1 node.")
	bound("max", &size.Max, "The maximum (0) is below the minimum; leave it out for no maximum.")
}

func leaseDurations(o *lenient.Object, l *loom.LeaseRule) {
	l.Initial, l.Max, l.Step = leaseMillis(o, "initial"), leaseMillis(o, "max"), leaseMillis(o, "step")
}

var leaseText = regexp.MustCompile(`^([0-9]{1,18})(s|m|h|d)?$`)

// leaseMillis reads a duration in milliseconds, or a text such as "7d".
func leaseMillis(o *lenient.Object, name string) int64 {
	text, isText := o.Free(name).(string)
	if !isText {
		n := o.Int64(name)
		if n < 0 {
			o.Fail(name, "A duration cannot be negative.")
			return 0
		}
		return n
	}
	match := leaseText.FindStringSubmatch(text)
	if match == nil {
		o.Fail(name, "“%s” is no duration: give milliseconds, or a number with s, m, h or d, such as “7d”.", text)
		return 0
	}
	n, err := strconv.ParseInt(match[1], 10, 64)
	units := map[string]time.Duration{"": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	unit := units[match[2]].Milliseconds()
	if err != nil || n > math.MaxInt64/unit/int64(time.Millisecond) {
		o.Fail(name, "The duration “%s” is too long.", text)
		return 0
	}
	return n * unit
}

// lowerActions takes the names of actions in any case.
func lowerActions(_ *lenient.Object, t *loom.PluginType) {
	var timeouts loom.PluginTimeouts
	for _, action := range slices.Sorted(maps.Keys(t.Timeouts)) {
		if timeouts == nil {
			timeouts = loom.PluginTimeouts{}
		}
		timeouts[lower(action)] = t.Timeouts[action]
	}
	t.Timeouts = timeouts
	for i, action := range t.Actions {
		t.Actions[i] = lower(action)
	}
}

func lower(action loom.TaskAction) loom.TaskAction {
	return loom.TaskAction(strings.ToLower(string(action)))
}
