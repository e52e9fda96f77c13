package loom

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A catalog kind is described by the tags of the fields of its struct. Each tag is read in one
// place, and docs/decisions/0062-one-description-of-a-kind.md lists them all:
//
//	json, alias, decode          names, and how a document is read (app/lenient)
//	description, enum, required  JSON Schema in the OpenAPI document (app/api/wire/schema)
//	names, keynames              the kind that a text, or the keys of an object, name (References)
//	new                          the value in the document of a new entry (Skeleton)
//	label, help, own             words on pages and in forms (Described)

// Reference is the name of an entry in another one.
type Reference struct {
	Kind EntityKind
	Name string
	// At is where the name is: keys and indexes.
	At []any
	// Stops says that what names an entry cannot be used without it; else the name
	// is merely without effect.
	Stops bool
	// Provided says that a service that provides the name will do.
	Provided bool
}

// References lists what an entry names, in the order of its fields.
func References(entry Entry) []Reference {
	var found []Reference
	references(reflect.ValueOf(entry).Elem(), nil, &found)
	return found
}

// names is what a tag names or keynames says, such as “services,stops,provided”.
type names struct {
	kind            EntityKind
	stops, provided bool
}

func namesIn(tag string) names {
	kind, options, _ := strings.Cut(tag, ",")
	return names{EntityKind(kind), strings.Contains(options, "stops"), strings.Contains(options, "provided")}
}

func (n names) add(found *[]Reference, name string, at []any) {
	if name != "" {
		*found = append(*found, Reference{Kind: n.kind, Name: name, At: slices.Clone(at), Stops: n.stops, Provided: n.provided})
	}
}

// references walks a struct.
func references(v reflect.Value, at []any, found *[]Reference) {
	for _, f := range wireFields(v.Type()) {
		field := v.Field(f.index)
		switch {
		case f.embedded:
			references(field, at, found)
		case f.names.kind != "":
			f.names.texts(field, append(at, f.name), found)
		case f.deep:
			namesInside(field, f.keys, append(at, f.name), found)
		}
	}
}

// texts adds the texts in a value: a name, a list of names, or what has a name.
func (n names) texts(v reflect.Value, at []any, found *[]Reference) {
	switch v.Kind() {
	case reflect.String:
		n.add(found, v.String(), at)
	case reflect.Slice:
		for i := range v.Len() {
			n.texts(v.Index(i), append(at, i), found)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			n.texts(v.Elem(), at, found)
		}
	case reflect.Struct:
		n.add(found, v.FieldByName("Name").String(), append(at, "name"))
	}
}

// namesInside looks for names in the keys of a value, and in the structs that it holds.
func namesInside(v reflect.Value, keyNames names, at []any, found *[]Reference) {
	switch v.Kind() {
	case reflect.Struct:
		references(v, at, found)
	case reflect.Pointer:
		if !v.IsNil() {
			references(v.Elem(), at, found)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			below := append(at, key.String())
			if keyNames.kind != "" {
				keyNames.add(found, key.String(), below)
			}
			namesInside(v.MapIndex(key), names{}, below, found)
		}
	}
}

// Skeleton returns the document that a new entry of a kind starts with: the fields that are
// tagged new, without a name, so that nobody stores one as it is.
func Skeleton(k EntityKind) string {
	var b bytes.Buffer
	skeleton(&b, reflect.TypeOf(NewEntry(k)).Elem())
	var indented bytes.Buffer
	if err := json.Indent(&indented, b.Bytes(), "", "  "); err != nil {
		return "" // a test reads them all
	}
	return indented.String()
}

func skeleton(b *bytes.Buffer, t reflect.Type) {
	b.WriteByte('{')
	separator := ""
	var members func(t reflect.Type)
	members = func(t reflect.Type) {
		for _, f := range wireFields(t) {
			of := t.Field(f.index)
			value, tagged := of.Tag.Lookup("new")
			switch {
			case f.embedded:
				members(of.Type)
				continue
			case value == "-" || !tagged && (of.Type.Kind() != reflect.Struct || !hasNew(of.Type)):
				continue
			}
			b.WriteString(separator + `"` + f.name + `":`)
			separator = ","
			switch zero := map[reflect.Kind]string{reflect.Slice: "[]", reflect.Map: "{}", reflect.Bool: "false", reflect.Int: "0", reflect.Int64: "0"}; {
			case !tagged:
				skeleton(b, of.Type)
			case of.Type.Kind() == reflect.String:
				text, _ := json.Marshal(value) // a text
				b.Write(text)
			case value == "":
				b.WriteString(zero[of.Type.Kind()])
			default:
				b.WriteString(value)
			}
		}
	}
	members(t)
	b.WriteByte('}')
}

// hasNew reports whether a struct has a field that belongs into a new document.
func hasNew(t reflect.Type) bool {
	for f := range t.Fields() {
		if _, tagged := f.Tag.Lookup("new"); tagged || f.Type.Kind() == reflect.Struct && hasNew(f.Type) {
			return true
		}
	}
	return false
}

// Description is what people are told of a field of a kind.
type Description struct {
	// Path are the names on the wire.
	Path        []string
	Label, Help string
	Type        reflect.Type
	// Enum are its values where it has few.
	Enum []string
	// OwnForm and OwnPage say that the form, or the page, of the kind has code for it.
	OwnForm, OwnPage bool
	// Value is that of an entry; of a kind it is not set.
	Value reflect.Value
}

// Described lists the fields of an entry that have a label, in their order.
func Described(entry Entry) []Description {
	var list []Description
	described(reflect.ValueOf(entry).Elem(), Description{}, "%s", &list)
	return list
}

// Describe returns the description of a field of a kind by its names on the wire. It panics
// for a field without one, which the tests of forms find.
func Describe(k EntityKind, path ...string) Description {
	for _, d := range Described(NewEntry(k)) {
		if slices.Equal(d.Path, path) {
			return d
		}
	}
	panic("loom: " + string(k) + " has no description of " + strings.Join(path, "."))
}

func described(v reflect.Value, within Description, words string, list *[]Description) {
	for _, f := range wireFields(v.Type()) {
		of, d := v.Type().Field(f.index), within
		if f.embedded {
			described(v.Field(f.index), within, words, list)
			continue
		}
		own := of.Tag.Get("own")
		d.Path = append(slices.Clone(within.Path), f.name)
		d.Label, d.Help, d.Type, d.Value = of.Tag.Get("label"), of.Tag.Get("help"), of.Type, v.Field(f.index)
		d.OwnForm, d.OwnPage = d.OwnForm || strings.Contains(own, "form"), d.OwnPage || strings.Contains(own, "page")
		if enum := of.Tag.Get("enum"); enum != "" {
			d.Enum = strings.Split(enum, ",")
		}
		if of.Type.Kind() == reflect.Pointer && of.Type.Elem().Kind() == reflect.Struct {
			if d.Value.IsNil() {
				d.Value = reflect.New(of.Type.Elem())
			}
			d.Value = d.Value.Elem()
		}
		switch {
		case d.Value.Kind() == reflect.Struct:
			inner := words
			if d.Label != "" {
				inner = d.Label // such as “Install %s”
			}
			described(d.Value, Description{Path: d.Path, OwnForm: d.OwnForm, OwnPage: d.OwnPage}, inner, list)
		case d.Label != "":
			if !strings.HasPrefix(words, "%s") {
				d.Label = strings.ToLower(d.Label)
			}
			d.Label = strings.Replace(words, "%s", d.Label, 1)
			*list = append(*list, d)
		}
	}
}

// wireField is a field of a struct that is part of documents.
type wireField struct {
	index    int
	name     string
	embedded bool
	// names is what its texts name, keys what its keys do.
	names, keys names
	// deep says that there are names inside.
	deep bool
}

var wireFieldsOf sync.Map // []wireField by reflect.Type

// wireFields returns the fields of a struct; what was found of a type is kept.
func wireFields(t reflect.Type) []wireField {
	if known, ok := wireFieldsOf.Load(t); ok {
		return known.([]wireField)
	}
	var list []wireField
	for i := range t.NumField() {
		of := t.Field(i)
		name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		f := wireField{index: i, name: name, embedded: of.Anonymous && name == "", names: namesIn(of.Tag.Get("names")), keys: namesIn(of.Tag.Get("keynames"))}
		f.deep = f.keys.kind != "" || hasNames(of.Type)
		list = append(list, f)
	}
	wireFieldsOf.Store(t, list)
	return list
}

// hasNames reports whether values of a type hold names of entries.
func hasNames(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map:
		return hasNames(t.Elem())
	case reflect.Struct:
		for _, f := range wireFields(t) {
			if f.names.kind != "" || f.deep {
				return true
			}
		}
	}
	return false
}
