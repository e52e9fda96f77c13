package loom

import (
	"encoding/json"
	"testing"
)

func TestCheckValue(t *testing.T) {
	t.Parallel()
	one, ten := 1.0, 10.0
	for _, c := range []struct {
		field FieldSchema
		value any
		want  string
	}{
		{FieldSchema{Type: "select", Options: []string{"a", "b"}}, "b", ""},
		{FieldSchema{Type: "select", Options: []string{"a", "b"}}, "c", "Choose one of a, b."},
		{FieldSchema{Type: "select", Options: []string{"a", "b"}}, "", ""},
		{FieldSchema{Type: "select"}, "c", ""},
		{FieldSchema{Type: "text", Options: []string{"a"}}, "c", ""}, // options of a text are proposals
		{FieldSchema{Type: "checkbox"}, true, ""},
		{FieldSchema{Type: "checkbox"}, "false", ""},
		{FieldSchema{Type: "checkbox"}, "on", ""},
		{FieldSchema{Type: "checkbox"}, nil, ""},
		{FieldSchema{Type: "checkbox"}, "yes", "It takes true or false."},
		{FieldSchema{Type: "checkbox"}, json.Number("1"), "It takes true or false."},
		{FieldSchema{Type: "number"}, "1.5", ""},
		{FieldSchema{Type: "number"}, "many", "It takes numbers."},
		{FieldSchema{Type: "number", Min: &one}, json.Number("0"), "It takes numbers from 1."},
		{FieldSchema{Type: "number", Max: &ten}, "11", "It takes numbers up to 10."},
		{FieldSchema{Type: "text", Min: &one, Max: &ten}, "NaN", "It takes numbers from 1 to 10."},
		{FieldSchema{Type: "text", Pattern: "[a-z]+"}, "abc", ""},
		{FieldSchema{Type: "text", Pattern: "[a-z]+"}, "abc1", "It takes texts of the form [a-z]+."},
		{FieldSchema{Type: "text", Pattern: "("}, "abc1", ""},
		{FieldSchema{Type: "text"}, map[string]any{"a": 1}, ""},
	} {
		if got := c.field.CheckValue(c.value); got != c.want {
			t.Errorf("%+v takes %#v: %q, want %q", c.field, c.value, got, c.want)
		}
	}
}
