package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"loom/app/lenient"
	"loom/app/loom"
)

// Bundle is a catalog as it is exported and imported: entries of the six kinds of
// a tenant. As JSON it is an object with an array for each kind.
type Bundle struct {
	Entries map[loom.EntityKind][]loom.Entry
	// Invalid are entries that could not be read; they stop an import.
	Invalid []InvalidEntry
	// names are those met so far.
	names map[EntryName]bool
	// unlisted is how many more entries could not be read than Invalid lists.
	unlisted int
	// named are the kinds that the document or folder has, empty ones included.
	named map[loom.EntityKind]bool
}

// maxInvalid is how many entries that cannot be read a bundle lists.
const maxInvalid = 100

// refuse lists an entry that cannot be read.
func (b *Bundle) refuse(at place, kind loom.EntityKind, name string, fields []loom.FieldError) {
	if len(b.Invalid) >= maxInvalid {
		b.unlisted++
		return
	}
	b.Invalid = append(b.Invalid, at.invalid(kind, name, fields))
}

// whole ends the list of entries that cannot be read, which says how many more there are.
func (b Bundle) whole() Bundle {
	if b.unlisted > 0 {
		b.Invalid = append(b.Invalid, InvalidEntry{Kind: b.Invalid[0].Kind, Name: "…", Fields: []loom.FieldError{{Message: fmt.Sprintf("%d more entries are invalid. Correct those above, then try again.", b.unlisted)}}})
		b.unlisted = 0
	}
	return b
}

func newBundle() Bundle {
	return Bundle{Entries: map[loom.EntityKind][]loom.Entry{}, names: map[EntryName]bool{}, named: map[loom.EntityKind]bool{}}
}

// bare reports whether a bundle has none of the kinds, not even an empty one.
func (b Bundle) bare() bool {
	return len(b.named) == 0 && len(b.Entries) == 0 && len(b.Invalid) == 0
}

// InvalidEntry says what is wrong with an entry of a bundle. Name is its place in
// the bundle when it has no name. Fields are named from the bundle on:
// "services[1].links[0].url", or "services/web.json: links[0].url" in a folder.
type InvalidEntry struct {
	Kind   loom.EntityKind   `json:"kind"`
	Name   string            `json:"name" description:"Its place in the document when it has no name."`
	Fields []loom.FieldError `json:"errors"`
}

// place is where an entry stands in a bundle: "services[1]", with a dot before the
// names of fields, or the path of a file with a colon.
type place struct{ at, before string }

func element(kind loom.EntityKind, i int) place {
	return place{fmt.Sprintf("%s[%d]", kind, i), "."}
}

func (p place) invalid(kind loom.EntityKind, name string, fields []loom.FieldError) InvalidEntry {
	out := InvalidEntry{Kind: kind, Name: name, Fields: make([]loom.FieldError, len(fields))}
	if out.Name == "" {
		out.Name = p.at
	}
	for i, f := range fields {
		out.Fields[i] = loom.FieldError{Field: p.at, Message: f.Message}
		if f.Field != "" {
			out.Fields[i].Field += p.before + f.Field
		}
	}
	return out
}

// MarshalJSON gives the export document, every kind present.
func (b Bundle) MarshalJSON() ([]byte, error) {
	document := make(map[loom.EntityKind][]loom.Entry, len(loom.TenantKinds))
	for _, kind := range loom.TenantKinds {
		if document[kind] = b.Entries[kind]; document[kind] == nil {
			document[kind] = []loom.Entry{}
		}
	}
	return json.Marshal(document)
}

// DecodeBundle reads an export document as Decode reads entries; missing kinds
// are empty. Entries with mistakes are named in Invalid; the error is for what is
// no document at all, or has a member that is no kind: left alone it would be
// missed only when its entries are gone.
func DecodeBundle(body []byte) (Bundle, error) {
	o, err := lenient.ReadBundle(body)
	if err != nil {
		return Bundle{}, err
	}
	b := newBundle()
	checkMembers(o)
	for _, kind := range loom.TenantKinds {
		if o.Has(string(kind)) {
			b.named[kind] = true
		}
		for i, value := range o.Array(string(kind)) {
			at := element(kind, i)
			fields, ok := value.(map[string]any)
			if !ok {
				b.refuse(at, kind, "", []loom.FieldError{{Message: "An entry is a JSON object."}})
				continue
			}
			b.add(kind, at, lenient.FromMap("", fields))
		}
	}
	return b.whole(), o.Err()
}

// checkMembers refuses members of an export document that are no kinds.
func checkMembers(o *lenient.Object) {
	known := make([]string, len(loom.TenantKinds))
	for i, kind := range loom.TenantKinds {
		known[i] = string(kind)
	}
	for _, name := range o.Names() {
		if slices.Contains(known, name) {
			continue
		}
		if near := loom.Nearest(name, known); near != "" {
			o.Fail(name, "There is no member “%.60s” in a catalog; did you mean “%s”?", name, near)
			continue
		}
		o.Fail(name, "There is no member “%.60s” in a catalog; there are %s.", name, loom.And(known))
	}
}

// DecodeFolder reads a catalog folder, <kind>/<name>.json;
// other files are left out. Mistakes, and names that are not those of their
// files, are in Invalid.
func DecodeFolder(folder fs.FS) (Bundle, error) {
	b := newBundle()
	for _, kind := range loom.TenantKinds {
		files, err := fs.ReadDir(folder, string(kind))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Bundle{}, fmt.Errorf("read the folder %s: %w", kind, err)
		}
		b.named[kind] = true
		for _, file := range files {
			name, isJSON := strings.CutSuffix(file.Name(), ".json")
			if !isJSON || file.IsDir() {
				continue
			}
			body, err := fs.ReadFile(folder, path.Join(string(kind), file.Name()))
			if err != nil {
				return Bundle{}, fmt.Errorf("read %s: %w", file.Name(), err)
			}
			b.addFile(kind, name, body)
		}
	}
	return b.whole(), nil
}

// addFile adds the entry in a file of a catalog folder; name is that of the file
// without its ending.
func (b *Bundle) addFile(kind loom.EntityKind, name string, body []byte) {
	at := place{string(kind) + "/" + name + ".json", ": "}
	o, err := lenient.Read(body)
	if err != nil {
		e := loom.AsError(err)
		fields := e.Fields
		if len(fields) == 0 {
			fields = []loom.FieldError{{Message: e.Message}}
		}
		b.refuse(at, kind, name, fields)
		return
	}
	if given := o.Text("name"); given != name {
		o.Fail("name", "The file is called “%s.json”, the entry “%s”; they must be the same.", name, given)
	}
	b.add(kind, at, o)
}

func (b *Bundle) add(kind loom.EntityKind, at place, o *lenient.Object) {
	entry, err := decodeObject(kind, o)
	if err != nil { // an unknown kind, which the callers do not pass
		b.refuse(at, kind, "", []loom.FieldError{{Message: err.Error()}})
		return
	}
	name := entry.Meta().Name
	if fields := importErrors(shapeErrors(entry, o.Errors()), entry); len(fields) > 0 {
		b.refuse(at, kind, name, fields)
		return
	}
	key := EntryName{kind, name}
	if b.names[key] {
		b.refuse(at, kind, name, []loom.FieldError{{Field: "name", Message: "The name “" + name + "” is twice in the bundle."}})
		return
	}
	b.names[key] = true
	b.Entries[kind] = append(b.Entries[kind], entry)
}

// importErrors leaves out the rule on leases, which imports may break. A negative lease has been refused while reading.
func importErrors(fields []loom.FieldError, entry loom.Entry) []loom.FieldError {
	var lease loom.LeaseRule
	switch t := entry.(type) {
	case *loom.Template:
		lease = t.Administration.Lease
	case *loom.PartialTemplate:
		lease = t.Administration.Lease
	default:
		return fields
	}
	if lease.Max == 0 || lease.Initial != 0 && lease.Initial <= lease.Max {
		return fields
	}
	return slices.DeleteFunc(fields, func(f loom.FieldError) bool { return f.Field == "administration.leaseduration.initial" })
}
