package loom

import (
	"slices"
	"testing"
)

// TestFilesOf: fields that name resources count, and the cookbooks and roles of a run list.
func TestFilesOf(t *testing.T) {
	t.Parallel()
	plugin := &PluginType{Base: Base{Name: "auto"},
		Parameters: map[string]FieldGroup{"admin": {Fields: map[string]FieldSchema{
			"script": {Type: "text", ResourceType: "scripts"}, "data": {Type: "resource", ResourceType: "hiera"}, "old": {Type: "resource", ResourceType: "gone"}, "args": {Type: "text"},
		}}},
		ResourceTypes: map[string]ResourceType{"scripts": {}, "hiera": {}, "cookbooks": {}, "roles": {}},
	}
	for _, c := range []struct {
		fields map[string]string
		want   []string
	}{
		{nil, nil},
		{map[string]string{"script": "web.sh", "args": "web.sh start"}, []string{"auto/scripts/web.sh"}},
		{map[string]string{"script": "/usr/bin/true"}, nil},
		{map[string]string{"script": "service nginx start"}, nil},
		{map[string]string{"script": " a.sh ", "data": "b.yaml", "old": "c"}, []string{"auto/hiera/b.yaml", "auto/scripts/a.sh"}},
		{map[string]string{"run_list": "recipe[nginx::default], recipe[nginx::site],role[web],recipe[base]"}, []string{"auto/cookbooks/nginx", "auto/roles/web.json", "auto/cookbooks/base"}},
	} {
		var got []string
		for _, ref := range FilesOf(plugin, ServiceAction{Type: "auto", Fields: c.fields}) {
			if ref.Kind != string(KindAutomatorType) {
				t.Errorf("%v: kind %s", c.fields, ref.Kind)
			}
			got = append(got, ref.FileKey())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.fields, got, c.want)
		}
	}
}

// TestSameWork: only what is shown to people may differ.
func TestSameWork(t *testing.T) {
	t.Parallel()
	made := func(change func(*Service)) *Service {
		s := &Service{Base: Base{Name: "web", Version: 1}, DefaultConfig: map[string]any{"port": 80},
			Provisioner: ServiceProvisioner{Actions: map[TaskAction]ServiceAction{ActionStart: {Type: "shell", Fields: map[string]string{"script": "web.sh"}}}}}
		change(s)
		return s
	}
	same := made(func(*Service) {})
	for what, c := range map[string]struct {
		change func(*Service)
		same   bool
	}{
		"nothing": {func(*Service) {}, true},
		"shown": {func(s *Service) {
			s.Base = Base{Name: "web", Version: 2, Label: "Web", Description: "d", Icon: "i", Deprecated: true}
		}, true},
		"empty members": {func(s *Service) { s.Follows, s.Links, s.Dependencies.Provides = []string{}, []Link{}, []string{} }, true},
		"number":        {func(s *Service) { s.DefaultConfig = map[string]any{"port": 80.0} }, true},
		"config":        {func(s *Service) { s.DefaultConfig = map[string]any{"port": 81} }, false},
		"field":         {func(s *Service) { s.Provisioner.Actions[ActionStart].Fields["args"] = "x" }, false},
		"action":        {func(s *Service) { s.Provisioner.Actions[ActionStop] = ServiceAction{Type: "shell"} }, false},
		"dependency":    {func(s *Service) { s.Dependencies.Install.Requires = []string{"base"} }, false},
		"name":          {func(s *Service) { s.Name = "other" }, false},
	} {
		if got := made(c.change).SameWork(same); got != c.same {
			t.Errorf("%s: %v, want %v", what, got, c.same)
		}
	}
}
