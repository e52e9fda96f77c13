package loom

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Origin is one value of a resolved template and where it comes from.
type Origin struct {
	// Path is where it stands, as in field errors: "defaults.provider",
	// "constraints.services.web". Members of lists have their own, by name.
	Path string
	// Value is the value for people: a text as it is, else JSON.
	Value string
	// Kind and Name are the template or partial template that said it last.
	Kind EntityKind
	Name string
	// Over are those whose value this one replaced, in order.
	Over []string
	// Locked says that an immutable partial template keeps later parts from setting it.
	Locked bool
}

// TemplateOrigins merges t as MergeTemplate does and says for each value of the
// result which part it comes from: those of lists first mentioned, all else last set.
// Values that nobody gave are left out. Errors: as MergeTemplate.
func TemplateOrigins(t Template, find TemplateLookup) ([]Origin, error) {
	chain, err := ancestry(t, find)
	if err != nil {
		return nil, err
	}
	m := merger{locked: map[string]string{}, met: map[string]bool{}, out: emptyTemplate()}
	o := origins{at: map[string]int{}}
	for _, part := range chain {
		for i, include := range part.Includes {
			if m.met[include.Name] {
				continue
			}
			m.met[include.Name] = true
			partial, err := find.Partial(include.Name)
			if err != nil {
				return nil, missingPart(err, fmt.Sprintf("includes[%d].name", i), "Template “%s” includes the partial template “%s”, which does not exist.", part.Name, include.Name)
			}
			before := valuesOf(m.out)
			if err := m.partial(partial); err != nil {
				return nil, err
			}
			o.note(before, valuesOf(m.out), KindPartialTemplate, partial.Name, asTemplateValues(partial))
		}
		before := valuesOf(m.out)
		if err := m.template(part); err != nil {
			return nil, err
		}
		o.note(before, valuesOf(m.out), KindTemplate, part.Name, valuesOf(part))
	}
	for i := range o.found {
		if key, isConfig := strings.CutPrefix(o.found[i].Path, "defaults.config."); isConfig {
			_, o.found[i].Locked = m.locked[key]
		}
	}
	return o.inOrder(valuesOf(m.out)), nil
}

// origins is what is known about the values so far.
type origins struct {
	found []Origin
	at    map[string]int
}

// note records what a part changed: values that are new or other than before, and
// those that it repeats without need are left with whom they were from.
func (o *origins) note(before, after []namedValue, kind EntityKind, name string, own []namedValue) {
	old := byPath(before)
	said := byPath(own)
	for _, v := range after {
		was, there := old[v.path]
		_, own := said[v.path]
		if there && was == v.value || !own {
			continue
		}
		i, known := o.at[v.path]
		if !known {
			o.at[v.path] = len(o.found)
			o.found = append(o.found, Origin{Path: v.path, Value: v.value, Kind: kind, Name: name})
			continue
		}
		from := &o.found[i]
		from.Over = append(from.Over, from.Name)
		from.Value, from.Kind, from.Name = v.value, kind, name
	}
}

// inOrder gives what is known in the order of the result.
func (o *origins) inOrder(values []namedValue) []Origin {
	place := map[string]int{}
	for i, v := range values {
		place[v.path] = i
	}
	found := slices.DeleteFunc(o.found, func(f Origin) bool { _, there := place[f.Path]; return !there })
	slices.SortStableFunc(found, func(a, b Origin) int { return cmp.Compare(place[a.Path], place[b.Path]) })
	return found
}

type namedValue struct{ path, value string }

func byPath(values []namedValue) map[string]string {
	out := make(map[string]string, len(values))
	for _, v := range values {
		out[v.path] = v.value
	}
	return out
}

func asTemplateValues(p PartialTemplate) []namedValue {
	return valuesOf(Template{Defaults: p.Defaults, Compatibility: p.Compatibility, Links: p.Links})
}

// valuesOf takes a template apart into what is merged one by one.
func valuesOf(t Template) []namedValue {
	var out []namedValue
	add := func(path string, v any) {
		text, isText := v.(string)
		if !isText {
			body, err := json.Marshal(v)
			if err != nil {
				return // templates are made of JSON
			}
			text = string(body)
		}
		if strings.TrimSpace(text) != "" {
			out = append(out, namedValue{path, text})
		}
	}
	names := func(path string, list []string) {
		for _, name := range list {
			add(path+"."+name, name)
		}
	}
	d, c, k := t.Defaults, t.Compatibility, t.Constraints
	names("defaults.services", d.Services)
	add("defaults.provider", d.Provider)
	add("defaults.hardwaretype", d.HardwareType)
	add("defaults.imagetype", d.ImageType)
	add("defaults.dnsSuffix", d.DNSSuffix)
	for _, key := range sortedKeys(d.Config) {
		add("defaults.config."+key, d.Config[key])
	}
	names("compatibility.services", c.Services)
	names("compatibility.hardwaretypes", c.HardwareTypes)
	names("compatibility.imagetypes", c.ImageTypes)
	if low, high := k.Size.Bounds(); low != 1 || high != Unlimited {
		text := fmt.Sprintf("%d to %d", low, high)
		if high == Unlimited {
			text = fmt.Sprintf("%d or more", low)
		}
		add("constraints.size", text)
	}
	sets := func(path string, list [][]string) {
		for _, set := range list {
			joined := strings.Join(distinct(set), ", ")
			add(path+"."+joined, joined)
		}
	}
	sets("constraints.layout.mustcoexist", k.Layout.MustCoexist)
	sets("constraints.layout.cantcoexist", k.Layout.CantCoexist)
	for _, name := range sortedKeys(k.Services) {
		add("constraints.services."+name, k.Services[name])
	}
	if t.Administration.Lease != (LeaseRule{}) {
		l := t.Administration.Lease
		add("administration.leaseduration", "initial "+limit(l.Initial)+", maximum "+limit(l.Max)+", step "+limit(l.Step))
	}
	add("administration.onFailure", t.Administration.OnFailure)
	if seconds := t.Administration.Health.Interval; seconds != nil {
		add("administration.health.interval", strconv.Itoa(*seconds))
	}
	for _, part := range t.Administration.Repair.Parts() {
		add("administration.repair."+part.Name, string(*part.Choice))
	}
	if t.Preferences != nil {
		add("preferences", t.Preferences)
	}
	for _, l := range t.Links {
		add("links."+cmp.Or(l.Label, l.URL), l.URL)
	}
	return out
}

// limit words a duration of which 0 is none.
func limit(millis int64) string {
	if millis == 0 {
		return "unlimited"
	}
	return Duration(millis)
}
