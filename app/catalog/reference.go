package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// reference is the name of an entry in another one.
type reference struct {
	kind  loom.EntityKind
	name  string
	field string // JSON pointer
	// stops says that what names an entry cannot be used without it; else the name
	// is merely without effect.
	stops bool
	// provided says that a service that provides the name will do.
	provided bool
}

// pointer makes a JSON pointer (RFC 6901) of keys and indexes.
func pointer(parts ...any) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		switch p := part.(type) {
		case int:
			b.WriteString(strconv.Itoa(p))
		default:
			b.WriteString(pointerEscape.Replace(fmt.Sprint(p)))
		}
	}
	return b.String()
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// references lists what an entry names, in the order of the document.
func references(entry loom.Entry) []reference {
	var r referrer
	switch e := entry.(type) {
	case *loom.Provider:
		r.one(loom.KindProviderType, true, e.Type, "providertype")
	case *loom.HardwareType:
		r.providers(e.ProviderMap)
	case *loom.ImageType:
		r.providers(e.ProviderMap)
	case *loom.Service:
		r.service(e)
	case *loom.PartialTemplate:
		r.template(e.Defaults, e.Compatibility, e.Constraints)
	case *loom.Template:
		r.template(e.Defaults, e.Compatibility, e.Constraints)
		if p := e.Preferences; p != nil {
			r.list(loom.KindHardwareType, false, p.HardwareTypes, "preferences", "hardwaretypes")
			r.list(loom.KindImageType, false, p.ImageTypes, "preferences", "imagetypes")
		}
		if e.Extends != nil {
			r.one(loom.KindTemplate, true, e.Extends.Name, "extends", "name")
		}
		for i, part := range e.Includes {
			r.one(loom.KindPartialTemplate, true, part.Name, "includes", i, "name")
		}
	}
	return r.found
}

type referrer struct{ found []reference }

func (r *referrer) one(kind loom.EntityKind, stops bool, name string, at ...any) {
	if name != "" {
		r.found = append(r.found, reference{kind: kind, name: name, field: pointer(at...), stops: stops})
	}
}

func (r *referrer) list(kind loom.EntityKind, stops bool, names []string, at ...any) {
	for i, name := range names {
		r.one(kind, stops, name, append(slices.Clone(at), i)...)
	}
}

// depends is list for names that services may also provide.
func (r *referrer) depends(stops bool, names []string, at ...any) {
	first := len(r.found)
	r.list(loom.KindService, stops, names, at...)
	for i := range r.found[first:] {
		r.found[first+i].provided = true
	}
}

func (r *referrer) providers(entries map[string]map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		r.one(loom.KindProvider, false, name, "providermap", name)
	}
}

func (r *referrer) service(s *loom.Service) {
	d := s.Dependencies
	r.depends(false, d.Conflicts, "dependencies", "conflicts")
	r.depends(true, d.Install.Requires, "dependencies", "install", "requires")
	r.depends(false, d.Install.Uses, "dependencies", "install", "uses")
	r.depends(true, d.Runtime.Requires, "dependencies", "runtime", "requires")
	r.depends(false, d.Runtime.Uses, "dependencies", "runtime", "uses")
	for _, action := range slices.Sorted(maps.Keys(s.Provisioner.Actions)) {
		r.one(loom.KindAutomatorType, true, s.Provisioner.Actions[action].Type, "provisioner", "actions", action, "type")
	}
	r.depends(false, s.Follows, "follows")
}

func (r *referrer) template(d loom.Defaults, c loom.Compatibility, k loom.Constraints) {
	r.list(loom.KindService, true, d.Services, "defaults", "services")
	r.one(loom.KindProvider, true, d.Provider, "defaults", "provider")
	r.one(loom.KindHardwareType, true, d.HardwareType, "defaults", "hardwaretype")
	r.one(loom.KindImageType, true, d.ImageType, "defaults", "imagetype")
	r.list(loom.KindHardwareType, false, c.HardwareTypes, "compatibility", "hardwaretypes")
	r.list(loom.KindImageType, false, c.ImageTypes, "compatibility", "imagetypes")
	r.list(loom.KindService, false, c.Services, "compatibility", "services")
	for i, set := range k.Layout.MustCoexist {
		r.list(loom.KindService, false, set, "constraints", "layout", "mustcoexist", i)
	}
	for i, set := range k.Layout.CantCoexist {
		r.list(loom.KindService, false, set, "constraints", "layout", "cantcoexist", i)
	}
	for _, name := range slices.Sorted(maps.Keys(k.Services)) {
		r.one(loom.KindService, false, name, "constraints", "services", name)
		r.list(loom.KindHardwareType, false, k.Services[name].HardwareTypes, "constraints", "services", name, "hardwaretypes")
		r.list(loom.KindImageType, false, k.Services[name].ImageTypes, "constraints", "services", name, "imagetypes")
	}
}
