package automator_test

import (
	"reflect"
	"testing"

	"loom/app/loom"
	"loom/provisioner/automator/chefsolo"
	"loom/provisioner/automator/docker"
	"loom/provisioner/automator/puppet"
)

func TestDeclarations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		made      loom.PluginType
		kinds     map[string]string // type of each field
		override  []string
		defaults  map[string]any
		options   map[string][]string
		required  [][]string
		resources map[string]loom.ResourceType
	}{
		{
			name: "chef-solo", made: chefsolo.Type(),
			kinds: map[string]string{"run_list": "text", "json_attributes": "text", "chef_distribution": "select", "chef_version": "text",
				"chef_license": "select", "installer_url": "text", "strict_attributes": "checkbox"},
			defaults: map[string]any{"chef_distribution": "cinc", "strict_attributes": false},
			options: map[string][]string{"chef_distribution": {"cinc", "chef", "preinstalled"},
				"chef_license": {"accept", "accept-silent", "accept-no-persist"}},
			required: [][]string{{"run_list"}},
			resources: map[string]loom.ResourceType{
				"cookbooks": {Format: "archive"}, "data_bags": {Format: "archive"}, "roles": {Format: "file"}, "secrets": {Format: "file", Permissions: "0400"},
			},
		},
		{
			name: "docker", made: docker.Type(),
			kinds: map[string]string{"image_name": "text", "environment_variables": "text", "links": "text", "volumes": "text",
				"publish_ports": "text", "command": "text", "restart_policy": "select"},
			override:  []string{"environment_variables", "links", "volumes", "publish_ports", "command", "restart_policy"},
			defaults:  map[string]any{"restart_policy": "unless-stopped"},
			options:   map[string][]string{"restart_policy": {"no", "always", "unless-stopped"}},
			required:  [][]string{{"image_name"}},
			resources: map[string]loom.ResourceType{},
		},
		{
			name: "puppet", made: puppet.Type(),
			kinds: map[string]string{"manifest": "text", "classes": "text", "args": "text", "parameters": "textarea",
				"hiera_resource": "text", "environment": "text", "service_name": "text",
				"puppet_distribution": "select", "puppet_major": "text", "installer_url": "text"},
			defaults: map[string]any{"environment": "production", "puppet_distribution": "openvox", "puppet_major": "8"},
			options:  map[string][]string{"puppet_distribution": {"openvox", "puppet", "preinstalled"}},
			required: [][]string{{"manifest"}, {"classes"}, {"service_name"}},
			resources: map[string]loom.ResourceType{
				"modules": {Format: "archive"}, "manifests": {Format: "file", Permissions: "0644"}, "hiera": {Format: "archive"}, "eyaml_keys": {Format: "archive"},
			},
		},
	} {
		if c.made.Name != c.name || c.made.Label == "" || c.made.Description == "" {
			t.Errorf("%s: %+v", c.name, c.made.Base)
		}
		if errs := c.made.Validate(); len(errs) > 0 {
			t.Errorf("%s: %v", c.name, errs)
		}
		admin := c.made.Parameters["admin"]
		kinds, override, defaults, options := map[string]string{}, map[string]bool{}, map[string]any{}, map[string][]string{}
		for name, f := range admin.Fields {
			kinds[name] = f.Type
			if f.Override {
				override[name] = true
			}
			if f.Default != nil {
				defaults[name] = f.Default
			}
			if f.Options != nil {
				options[name] = f.Options
			}
			if f.IsSensitive() {
				t.Errorf("%s: %s is sensitive; fields of actions are stored in plain", c.name, name)
			}
		}
		wantOverride := map[string]bool{}
		for _, name := range c.override {
			wantOverride[name] = true
		}
		for what, pair := range map[string][2]any{
			"types": {kinds, c.kinds}, "override": {override, wantOverride}, "required": {admin.Required, c.required},
			"resources": {c.made.ResourceTypes, c.resources},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s: %s are %v, not %v", c.name, what, pair[0], pair[1])
			}
		}
		if len(defaults) != len(c.defaults) || len(options) != len(c.options) {
			t.Errorf("%s: defaults %v, options %v", c.name, defaults, options)
		}
		for name, want := range c.defaults {
			if defaults[name] != want {
				t.Errorf("%s: the default of %s is %v", c.name, name, defaults[name])
			}
		}
		for name, want := range c.options {
			if !reflect.DeepEqual(options[name], want) {
				t.Errorf("%s: the options of %s are %v", c.name, name, options[name])
			}
		}
		if len(c.made.Parameters["user"].Fields) != 0 {
			t.Errorf("%s has user fields", c.name)
		}
	}
}
