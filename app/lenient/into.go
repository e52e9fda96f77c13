package lenient

import (
	"reflect"
	"strings"
	"sync"
)

// A Decoder reads objects into structs by the tags of their fields: json has the name, alias
// an older one, decode:"-" is on fields that only Loom sets, and decode:"own" on those that
// a function of After reads. Lists and objects without omitempty are never nil.
type Decoder struct {
	// After has, by type, what reads the part of a document that tags cannot describe.
	// It is called after the fields of the struct were read, with a pointer to it.
	After map[reflect.Type]func(o *Object, into any)
}

// Into reads an object into the struct that into points to. What is wrong is recorded in
// the object.
func (d *Decoder) Into(o *Object, into any) {
	d.fields(o, reflect.ValueOf(into).Elem())
}

// member is a field of a struct as it is read.
type member struct {
	index     int
	name      string
	alias     string
	omitEmpty bool
	embedded  bool
}

var members sync.Map // of []member, by reflect.Type

func membersOf(t reflect.Type) []member {
	if known, ok := members.Load(t); ok {
		return known.([]member)
	}
	var list []member
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() && !f.Anonymous || name == "-" || f.Tag.Get("decode") != "" {
			continue
		}
		list = append(list, member{index: i, name: name, alias: f.Tag.Get("alias"), omitEmpty: options == "omitempty", embedded: f.Anonymous && name == ""})
	}
	members.Store(t, list)
	return list
}

// Names returns the names on the wire of the fields of a struct, in their order.
func Names[T any]() []string { return namesOf(reflect.TypeFor[T]()) }

func namesOf(t reflect.Type) []string {
	var names []string
	for _, m := range membersOf(t) {
		if m.embedded {
			names = append(names, namesOf(t.Field(m.index).Type)...)
			continue
		}
		names = append(names, m.name)
	}
	return names
}

func (d *Decoder) fields(o *Object, into reflect.Value) {
	for _, m := range membersOf(into.Type()) {
		field := into.Field(m.index)
		if m.embedded {
			d.fields(o, field)
			continue
		}
		old := m.alias != "" && o.Has(m.alias)
		if old {
			d.field(o, m.alias, m.omitEmpty, field)
		}
		if !old || o.Has(m.name) {
			d.field(o, m.name, m.omitEmpty, field)
		}
	}
	if after := d.After[into.Type()]; after != nil {
		after(o, into.Addr().Interface())
	}
}

// field reads the member of an object that has a name.
func (d *Decoder) field(o *Object, name string, omitEmpty bool, into reflect.Value) {
	switch into.Kind() {
	case reflect.String:
		into.SetString(o.Text(name))
	case reflect.Bool:
		into.SetBool(o.Bool(name))
	case reflect.Int:
		into.SetInt(int64(o.Int(name)))
	case reflect.Int64:
		into.SetInt(o.Int64(name))
	case reflect.Interface:
		if value := o.Free(name); value != nil {
			into.Set(reflect.ValueOf(value))
		}
	case reflect.Struct:
		d.fields(o.Object(name), into)
	case reflect.Pointer:
		d.pointer(o, name, into)
	case reflect.Slice:
		d.slice(o, name, into)
		if omitEmpty && into.Len() == 0 {
			into.SetZero()
		}
	case reflect.Map:
		d.object(o, name, into)
		if omitEmpty && into.Len() == 0 {
			into.SetZero()
		}
	default:
		panic("lenient: a field cannot be a " + into.Type().String())
	}
}

func (d *Decoder) pointer(o *Object, name string, into reflect.Value) {
	switch to := into.Type().Elem(); to.Kind() {
	case reflect.Float64:
		into.Set(reflect.ValueOf(o.FloatPtr(name)))
	case reflect.Struct:
		if _, ok := o.object(name); ok {
			into.Set(reflect.New(to))
			d.fields(o.Object(name), into.Elem())
		}
	default:
		if o.Has(name) {
			into.Set(reflect.New(to))
			d.field(o, name, false, into.Elem())
		}
	}
}

func (d *Decoder) slice(o *Object, name string, into reflect.Value) {
	list := reflect.MakeSlice(into.Type(), 0, 0)
	switch element := into.Type().Elem(); element.Kind() {
	case reflect.String:
		for _, text := range o.Texts(name) {
			list = reflect.Append(list, reflect.ValueOf(text).Convert(element))
		}
	case reflect.Struct:
		o.EachOf(name, func(_ int, object *Object) {
			value := reflect.New(element).Elem()
			d.fields(object, value)
			list = reflect.Append(list, value)
		})
	case reflect.Slice:
		list = reflect.ValueOf(o.TextSets(name))
	default:
		panic("lenient: a field cannot be a " + into.Type().String())
	}
	into.Set(list)
}

// object reads a map; where the field came under its alias too, both are joined.
func (d *Decoder) object(o *Object, name string, into reflect.Value) {
	element := into.Type().Elem()
	if element.Kind() == reflect.Interface { // as it was written, with its nulls
		into.Set(reflect.MakeMap(into.Type()))
		if free := o.FreeObject(name); free != nil {
			into.Set(reflect.ValueOf(free))
		}
		return
	}
	if into.IsNil() {
		into.Set(reflect.MakeMap(into.Type()))
	}
	from := o.Object(name)
	for _, key := range from.Names() {
		value := reflect.New(element).Elem()
		if element.Kind() == reflect.Struct {
			if _, ok := from.object(key); !ok {
				continue
			}
		}
		d.field(from, key, false, value)
		into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), value)
	}
}
