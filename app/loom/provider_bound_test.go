package loom

import "testing"

func TestOnlySecretsAreBound(t *testing.T) {
	t.Parallel()
	errs := (&PluginType{Base: Base{Name: "x"}, Parameters: map[string]FieldGroup{"admin": {Fields: map[string]FieldSchema{
		"key": {Label: "K", Type: "password", BoundTo: []string{"url"}}, "url": {Label: "U", Type: "text", BoundTo: []string{"key"}}}}}}).Validate()
	if len(errs) != 1 || errs[0].Field != "parameters.admin.fields.url.boundTo" {
		t.Errorf("errors %v", errs)
	}
}
