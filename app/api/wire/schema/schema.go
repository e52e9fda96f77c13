// Package schema makes JSON schemas (2020-12) of the bodies of the REST API from their Go
// types and the tags of their fields. The OpenAPI document is generated with it; the program
// does not need it.
//
// Answers have no members but those of the struct, and all of them but those with omitempty.
// Bodies of requests, and entries of the catalog, may have more, and need those that are
// tagged required. Besides the tags of jsonschema-go, items has a schema that is joined with
// that of the elements of a list, and schema one to take in place of that of the Go type.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/swaggest/jsonschema-go"
)

// Prefix is what references to a schema begin with.
const Prefix = "#/components/schemas/"

// All returns the schemas by name, as JSON values.
func All() (map[string]any, error) {
	out := map[string]any{
		"PluginTypeOrResources": map[string]any{"anyOf": []any{
			map[string]any{"$ref": Prefix + "PluginType"},
			map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "array", "items": map[string]any{"$ref": Prefix + "Resource"}}},
		}},
	}
	names := map[reflect.Type]string{}
	for name, b := range bodies {
		names[reflect.TypeOf(b.value)] = name
	}
	for name, b := range bodies {
		made, err := b.schema(names)
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
		out[name] = made
	}
	return out, nil
}

// body is what has a schema of its own.
type body struct {
	value any
	// request bodies need what is tagged required; others have all that is not omitempty.
	request bool
	// open bodies may have members that the struct has not.
	open        bool
	description string
}

func (b body) schema(names map[reflect.Type]string) (map[string]any, error) {
	r := jsonschema.Reflector{}
	for from, to := range mapped {
		r.AddTypeMapping(reflect.Zero(from).Interface(), to)
	}
	root := true
	s, err := r.Reflect(b.value, jsonschema.InlineRefs,
		jsonschema.InterceptNullability(func(p jsonschema.InterceptNullabilityParams) {
			if p.NullAdded {
				p.Schema.RemoveType(jsonschema.Null)
			}
		}),
		jsonschema.InterceptSchema(func(p jsonschema.InterceptSchemaParams) (stop bool, err error) {
			t := indirect(p.Value.Type())
			name, named := names[t]
			p.Schema.RemoveType(jsonschema.Null)
			switch {
			case p.Processed && t.Kind() == reflect.Struct && !b.open:
				no := false
				p.Schema.AdditionalProperties = &jsonschema.SchemaOrBool{TypeBoolean: &no}
			case p.Processed && t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface:
				p.Schema.AdditionalProperties = nil
			case p.Processed:
				p.Schema.Enum = append(p.Schema.Enum, enums[t]...)
			case named && !root:
				ref := Prefix + name
				p.Schema.Ref = &ref
				return true, nil
			case t == reflect.TypeFor[json.RawMessage]():
				return true, nil
			}
			root = false
			return false, nil
		}),
		jsonschema.InterceptProp(b.property),
	)
	if err != nil {
		return nil, err
	}
	if b.description != "" {
		s.WithDescription(b.description)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var made map[string]any
	return made, json.Unmarshal(text, &made)
}

func (b body) property(p jsonschema.InterceptPropParams) error {
	if !p.Processed {
		return nil
	}
	s := p.PropertySchema
	if !b.request && !strings.Contains(p.Field.Tag.Get("json"), ",omitempty") && p.Field.Tag.Get("required") == "" {
		p.ParentSchema.Required = append(p.ParentSchema.Required, p.Name)
	}
	if p.Field.Tag.Get("nullable") == "true" {
		s.AddType(jsonschema.Null)
	}
	if own := p.Field.Tag.Get("schema"); own != "" {
		description := s.Description
		*s = jsonschema.Schema{}
		if err := json.Unmarshal([]byte(own), s); err != nil {
			return err
		}
		s.Description = description
	}
	if s.Items == nil || s.Items.SchemaOrBool == nil {
		return nil
	}
	element := s.Items.SchemaOrBool.TypeObject
	if p.Field.Tag.Get("enum") != "" {
		element.Enum, s.Enum = s.Enum, nil
	}
	if more := p.Field.Tag.Get("items"); more != "" {
		return json.Unmarshal([]byte(more), element)
	}
	return nil
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
