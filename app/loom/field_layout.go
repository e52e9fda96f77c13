package loom

import "maps"

// FieldBlock is some fields of a form that follow each other: those of a group, or those of one
// of its methods.
type FieldBlock struct {
	Group, Method string
	Names         []string
}

// FieldLayout is the order of the fields of a type in forms.
type FieldLayout []FieldBlock

// Of gives the fields with their places. Those that the layout does not name stay as they are.
func (l FieldLayout) Of(fields map[string]FieldSchema) map[string]FieldSchema {
	return l.From(1, fields)
}

// From is Of with orders that begin at one.
func (l FieldLayout) From(order int, fields map[string]FieldSchema) map[string]FieldSchema {
	placed := maps.Clone(fields)
	for _, b := range l {
		for _, name := range b.Names {
			f := placed[name]
			f.Group, f.Method, f.Order = b.Group, b.Method, order
			placed[name] = f
			order++
		}
	}
	return placed
}
