package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/digitalocean"
	"loom/provisioner/provider/google"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/provider/rackspace"
	"loom/provisioner/provider/static"
)

// declared is what is promised of each type, one thing a line: a field as
// "block name type", with "o" where the cluster's creator may replace it, "s"
// where it is sensitive, "=" and its default, "|" and the number of its options;
// "need" and a required set; "file" or "archive" and a resource type.
var declared = map[string]struct {
	made loom.PluginType
	want string
}{
	"aws": {aws.Type(), `
		admin api_password password s
		admin api_user text
		admin associate_public_ip checkbox o =true
		admin availability_zone text o
		admin aws_region text =us-east-1 |14
		admin aws_root_ebs_delete_on_term checkbox o =true
		admin aws_root_ebs_size text o =10
		admin aws_root_ebs_volume_type select o =gp3 |4
		admin aws_session_token password s
		admin dedicated_instance checkbox o =false
		admin api_ca textarea
		admin endpoint_url text
		admin max_calls number =8
		admin iam_instance_profile text o
		admin placement_group text o
		admin provider_hostname checkbox o =false
		admin security_group_ids text o
		admin security_groups text o =default
		admin ssh_key_resource resource o
		admin ssh_keypair text o
		admin subnet_id text o
		admin use_instance_role checkbox =false
		need admin api_user api_password ssh_keypair ssh_key_resource aws_region security_groups
		need admin api_user api_password ssh_keypair ssh_key_resource aws_region security_group_ids subnet_id
		need admin use_instance_role ssh_keypair ssh_key_resource aws_region security_groups
		need admin use_instance_role ssh_keypair ssh_key_resource aws_region security_group_ids subnet_id
		file ssh_keys 0400`},
	"openstack": {openstack.Type(), `
		admin api_password password s
		admin api_user text
		admin application_credential_id text
		admin application_credential_secret password s
		admin availability_zone text o
		admin boot_volume_size_gb text o
		admin api_ca textarea
		admin endpoint_url text
		admin max_calls number =8
		admin floating_ip checkbox o =false
		admin floating_network text o
		admin network_ids text o
		admin openstack_auth_url text =https://keystone.example:5000/v3
		admin openstack_domain text =Default
		admin openstack_project_domain text
		admin openstack_region text o
		admin openstack_ssl_verify_peer checkbox =true
		admin openstack_tenant text
		admin openstack_user_domain text
		admin security_groups text o =default
		admin ssh_key_resource resource
		admin ssh_keypair text
		need admin api_user api_password openstack_tenant openstack_auth_url ssh_keypair ssh_key_resource
		need admin application_credential_id application_credential_secret openstack_auth_url ssh_keypair ssh_key_resource
		user user_data_resource text
		file ssh_keys 0400
		file user_data 0755`},
	"rackspace": {rackspace.Type(), `
		admin api_password password s
		admin api_user text
		admin api_ca textarea
		admin endpoint_url text
		admin max_calls number =8
		admin rackspace_bind_private checkbox =false
		admin rackspace_region select o =dfw |6
		need admin api_user api_password rackspace_region
		user rackconnect_wait checkbox =false
		user ssh_key_resource resource
		user ssh_keypair text
		file ssh_keys 0400`},
	"google": {google.Type(), `
		admin api_key_resource text
		admin auto_restart checkbox o =false
		admin bootstrap_interface select o =access_v4 |2
		admin api_ca textarea
		admin endpoint_url text
		admin max_calls number =8
		admin external_ip checkbox o =true
		admin google_client_email text
		admin google_data_disk_size_gb text o =200
		admin google_data_disk_type select o =standard |3
		admin google_project text
		admin google_root_disk_size_gb text o =10
		admin google_root_disk_type select o =standard |2
		admin network text o =default
		admin provider_hostname checkbox o =false
		admin ssh_key_resource resource
		admin ssh_user text
		admin subnetwork text o
		admin zone_name text o =us-central1-a |18
		need admin google_project api_key_resource ssh_key_resource zone_name
		file api_keys 0400
		file ssh_keys 0400`},
	"joyent": {joyent.Type(), `
		admin api_password password s
		admin api_user text
		admin api_ca textarea
		admin endpoint_url text
		admin max_calls number =8
		admin joyent_api_url text =https://us-east-1.api.joyentcloud.com |6
		admin joyent_version text =~7.0
		admin ssh_key_resource resource
		admin ssh_keypair text
		need admin api_user api_password
		need admin api_user ssh_keypair ssh_key_resource
		file ssh_keys 0400`},
	"digitalocean": {digitalocean.Type(), `
		admin api_password password s
		admin api_user text
		admin digitalocean_region text o =nyc3 |7
		admin api_ca textarea
		admin endpoint_url text
		admin max_calls number =8
		admin monitoring checkbox o =false
		admin ssh_key_resource resource
		admin ssh_keypair text
		admin vpc_uuid text o
		need admin api_password digitalocean_region ssh_keypair ssh_key_resource
		file ssh_keys 0400`},
	"static": {static.Type(), `
		admin cleanup_script resource
		admin hosts textarea
		admin ssh_key_resource resource
		admin ssh_password password s
		admin ssh_user text =root
		need admin hosts ssh_key_resource
		need admin hosts ssh_password
		file scripts 0755
		file ssh_keys 0400`},
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	for name, c := range declared {
		if c.made.Name != name || c.made.Label == "" || c.made.Description == "" {
			t.Errorf("%s: %+v", name, c.made.Base)
		}
		if errs := c.made.Validate(); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		var want []string
		for line := range strings.Lines(strings.TrimSpace(c.want)) {
			want = append(want, strings.TrimSpace(line))
		}
		got := facts(c.made)
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("%s lacks %q", name, line)
			}
		}
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("%s has %q, which nobody asked for", name, line)
			}
		}
		for _, group := range c.made.Parameters {
			for field, f := range group.Fields {
				if f.Type == "select" && f.Default != nil && !slices.Contains(f.Options, fmt.Sprint(f.Default)) {
					t.Errorf("%s: the default of %s is none of its options", name, field)
				}
				if f.ResourceType != "" && c.made.ResourceTypes[f.ResourceType].Format == "" {
					t.Errorf("%s: %s chooses among %s, of which there are none", name, field, f.ResourceType)
				}
			}
		}
	}
}

// facts tells a type in the lines of declared.
func facts(p loom.PluginType) []string {
	var lines []string
	for block, group := range p.Parameters {
		for name, f := range group.Fields {
			line := fmt.Sprint(block, " ", name, " ", f.Type)
			if f.Override {
				line += " o"
			}
			if f.IsSensitive() {
				line += " s"
			}
			if f.Default != nil {
				line += fmt.Sprint(" =", f.Default)
			}
			if len(f.Options) > 0 {
				line += fmt.Sprint(" |", len(f.Options))
			}
			lines = append(lines, line)
		}
		for _, set := range group.Required {
			lines = append(lines, fmt.Sprint("need ", block, " ", strings.Join(set, " ")))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.ResourceTypes)) {
		r := p.ResourceTypes[name]
		lines = append(lines, strings.TrimSpace(r.Format+" "+name+" "+r.Permissions))
	}
	return lines
}

// TestSentCredentialsAreBound: every sensitive field whose value is sent says which fields
// decide where and how, each of those is an address or a check, and none of them is for
// users to give. Those that are not bound never leave the provisioner.
func TestSentCredentialsAreBound(t *testing.T) {
	t.Parallel()
	local := map[string]string{
		"aws.api_password": "the key only signs", "common.ssh_key_passphrase": "opens a key on the provisioner",
	}
	bound := map[string]string{
		"openstack.api_password": "api_ca endpoint_url openstack_auth_url openstack_ssl_verify_peer", "openstack.application_credential_secret": "api_ca endpoint_url openstack_auth_url openstack_ssl_verify_peer",
		"rackspace.api_password": "api_ca endpoint_url rackspace_auth_url", "digitalocean.api_password": "api_ca endpoint_url", "joyent.api_password": "api_ca endpoint_url joyent_api_url",
		"aws.aws_session_token": "api_ca endpoint_url", "static.ssh_password": "hosts ssh_host_ca ssh_jump ssh_jump_host_key",
	}
	seen := map[string]bool{}
	types := map[string]loom.PluginType{"common": {Parameters: map[string]loom.FieldGroup{"admin": {Fields: provider.CommonFields()}}}}
	for name, c := range declared {
		types[name] = c.made
	}
	for name, made := range types {
		for group, fields := range made.Parameters {
			for field, schema := range fields.Fields {
				if !schema.IsSensitive() {
					continue
				}
				key := name + "." + field
				seen[key] = true
				if local[key] != "" {
					if len(schema.BoundTo) > 0 {
						t.Errorf("%s is bound to %v, but %s", key, schema.BoundTo, local[key])
					}
					continue
				}
				if got := strings.Join(slices.Sorted(slices.Values(schema.BoundTo)), " "); got != bound[key] || got == "" {
					t.Errorf("%s of group %s is bound to %q, want %q", key, group, got, bound[key])
				}
				for _, to := range schema.BoundTo {
					if at, known := made.Schema(to); known && at.Override || made.Parameters["user"].Fields[to].Label != "" {
						t.Errorf("users may give %s.%s, which moves %s", name, to, field)
					}
				}
			}
		}
	}
	for key := range bound {
		if !seen[key] {
			t.Errorf("%s is not there", key)
		}
	}
}

var switchReads = regexp.MustCompile(`\.Switch\("(\w+)", (true|false)\)`)

// TestSwitchDefaultsAreInForce: what a plugin makes of a switch that nobody set is the
// default that its type declares.
func TestSwitchDefaultsAreInForce(t *testing.T) {
	t.Parallel()
	read := 0
	for name, c := range declared {
		files, err := filepath.Glob(filepath.Join(name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", name, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range switchReads.FindAllStringSubmatch(string(text), -1) {
				schema, known := c.made.Schema(found[1])
				if !known {
					continue // what old providers carry, or a fact of a node
				}
				read++
				if fmt.Sprint(schema.Default) != found[2] {
					t.Errorf("%s: %s is %s where nobody sets it, and the type declares %v", file, found[1], found[2], schema.Default)
				}
			}
		}
	}
	if read < 10 {
		t.Errorf("%d switches are read", read)
	}
}
