package loom

import (
	"strings"
	"testing"
)

// TestFilesOfActions: what an action names must be there, and what it may run or read counts
// as used.
func TestFilesOfActions(t *testing.T) {
	t.Parallel()
	text := func(fields map[string]string) map[string]FieldGroup {
		group := FieldGroup{Fields: map[string]FieldSchema{}}
		for name, typ := range fields {
			group.Fields[name] = FieldSchema{Type: "text", ResourceType: typ}
		}
		return map[string]FieldGroup{"admin": group}
	}
	types := func(names ...string) map[string]ResourceType {
		all := map[string]ResourceType{}
		for _, name := range names {
			all[name] = ResourceType{}
		}
		return all
	}
	plugins := map[string]*PluginType{
		"shell":     {Parameters: text(map[string]string{"script": "scripts", "args": ""}), ResourceTypes: types("scripts")},
		"chef-solo": {Parameters: text(map[string]string{"run_list": ""}), ResourceTypes: types("cookbooks", "roles", "data_bags")},
		"puppet":    {Parameters: text(map[string]string{"manifest": "manifests", "classes": "", "hiera_resource": "hiera"}), ResourceTypes: types("modules", "manifests", "hiera", "eyaml_keys")},
		"other":     {Parameters: text(map[string]string{"playbook": "playbooks"}), ResourceTypes: types("playbooks")},
	}
	files := map[string][]string{
		"shell":     {"scripts/web.sh", "scripts/db.sh", "scripts/setup", "scripts/eb.sh"},
		"chef-solo": {"cookbooks/nginx", "cookbooks/base", "roles/web.json", "roles/web.rb", "roles/db.rb", "data_bags/users"},
		"puppet":    {"modules/web", "modules/stdlib", "manifests/site.pp", "hiera/data", "eyaml_keys/k"},
		"other":     {"playbooks/site.yml", "playbooks/db.yml"},
	}
	for _, c := range []struct {
		plugin      string
		fields      map[string]string
		named, used string
	}{
		{"shell", nil, "", ""},
		{"shell", map[string]string{"script": "web.sh", "args": "start"}, "scripts/web.sh", "scripts/web.sh"},
		{"shell", map[string]string{"script": "web.sh", "args": "--then db.sh"}, "scripts/web.sh", "scripts/web.sh scripts/db.sh"},
		{"shell", map[string]string{"script": "setup"}, "", "scripts/setup"},
		{"shell", map[string]string{"script": "/usr/bin/true"}, "", ""},
		{"shell", map[string]string{"script": "service nginx start"}, "", ""},
		{"chef-solo", map[string]string{"run_list": "recipe[nginx::default], recipe[nginx::site],role[web],recipe[base]"},
			"cookbooks/nginx roles/web.json roles/web.rb cookbooks/base", "cookbooks/nginx cookbooks/base roles/web.json roles/web.rb data_bags/users"},
		{"chef-solo", map[string]string{"run_list": "nginx"}, "cookbooks/nginx", "cookbooks/nginx data_bags/users"},
		{"chef-solo", map[string]string{"run_list": "nginx::default"}, "cookbooks/nginx", "cookbooks/nginx data_bags/users"},
		{"chef-solo", map[string]string{"run_list": "recipe[nginx@1.2.3]"}, "cookbooks/nginx", "cookbooks/nginx data_bags/users"},
		{"chef-solo", map[string]string{"run_list": "recipe[nginx::site@1.2.3]"}, "cookbooks/nginx", "cookbooks/nginx data_bags/users"},
		{"chef-solo", map[string]string{"run_list": "role[db]"}, "roles/db.json roles/db.rb", "roles/db.rb data_bags/users"},
		{"puppet", map[string]string{"classes": "web::service, ::web, stdlib"}, "modules/web modules/stdlib", "modules/web modules/stdlib"},
		{"puppet", map[string]string{"manifest": " site.pp "}, "", "modules/web modules/stdlib manifests/site.pp"},
		{"puppet", map[string]string{"classes": "web", "hiera_resource": "data"}, "modules/web", "modules/web hiera/data"},
		{"puppet", map[string]string{"service_name": "web"}, "", ""},
		{"other", map[string]string{"playbook": "site.yml"}, "", "playbooks/site.yml"},
		{"other", map[string]string{"run_list": "site.yml", "script": "db.yml"}, "", ""},
	} {
		plugin := plugins[c.plugin]
		plugin.Name = c.plugin
		action := ServiceAction{Type: c.plugin, Fields: c.fields}
		var named, used []string
		for _, file := range FilesOf(plugin, action) {
			for _, ref := range file.Refs {
				named = append(named, ref.Type+"/"+ref.Name)
			}
		}
		for _, file := range files[c.plugin] {
			typ, name, _ := strings.Cut(file, "/")
			ref := ResourceRef{Kind: string(KindAutomatorType), Plugin: c.plugin, Type: typ, Name: name}
			if ref.UsedBy(plugin, action) {
				used = append(used, file)
			}
			ref.Plugin = "another"
			if ref.UsedBy(plugin, action) {
				t.Errorf("%s %v: a file of another automator is used", c.plugin, c.fields)
			}
		}
		if got := strings.Join(named, " "); got != c.named {
			t.Errorf("%s %v names %q, want %q", c.plugin, c.fields, got, c.named)
		}
		if got := strings.Join(used, " "); got != c.used {
			t.Errorf("%s %v uses %q, want %q", c.plugin, c.fields, got, c.used)
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
