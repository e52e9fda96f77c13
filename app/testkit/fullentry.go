package testkit

import (
	"reflect"

	"loom/app/loom"
)

// FullEntry returns an entry of a kind with a value in every field that documents may set,
// whatever the rules say of it. Lists and objects have one element each.
func FullEntry(kind loom.EntityKind) loom.Entry {
	entry := loom.NewEntry(kind)
	fill(reflect.ValueOf(entry).Elem(), "")
	meta := entry.Meta()
	meta.Name, meta.Version = "full", 0
	return entry
}

// fill sets a value; texts are those of their place.
func fill(v reflect.Value, at string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("decode") != "-" {
				fill(v.Field(i), f.Name)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), at)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), at)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, at)
		v.SetMapIndex(reflect.ValueOf(fullKey(v.Type().Key())).Convert(v.Type().Key()), value)
	case reflect.String:
		v.SetString(fullText(v.Type(), at))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Interface:
		v.Set(reflect.ValueOf("any " + at))
	default:
		panic("testkit: no value for a " + v.Type().String())
	}
}

func fullText(t reflect.Type, at string) string {
	if t == reflect.TypeFor[loom.TaskAction]() {
		return string(loom.ActionInstall)
	}
	return "a " + at
}

func fullKey(t reflect.Type) string {
	if t == reflect.TypeFor[loom.TaskAction]() {
		return string(loom.ActionInstall)
	}
	return "key"
}
