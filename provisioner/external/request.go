package external

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/provisioner/resource"
)

// request builds what a plugin reads from its standard input.
func request(c *call, spec *loom.TaskSpec, files string) (map[string]any, error) {
	t := c.plugin.Manifest.Types[c.typeName]
	payload := spec.Payload(true)
	var input map[string]any
	if c.kind == KindProvider {
		input = providerInput(spec)
	} else {
		payload = servicePayload(spec, t.NeedsProviderCredentials)
		input = automatorInput(spec)
	}
	input["hostname"], input["idempotencyKey"] = spec.Hostname, spec.IdempotencyKey
	r := map[string]any{
		"protocol": Protocol, "kind": c.kind, "type": c.typeName, "action": c.action,
		"task": payload, "input": input, "ssh": nil,
		"resources": resourcesIn(files), "settings": settings(spec),
		"labels": map[string]any{
			loom.LabelNode: spec.Node, loom.LabelKey: spec.IdempotencyKey, loom.LabelTenant: spec.Tenant,
			loom.LabelCluster: spec.Ref.Operation.Cluster.String(),
		},
		"deadline": payload["deadline"],
	}
	// A plugin learns of no secret by the list of those to hide.
	told, err := json.Marshal([]any{payload, input})
	if err != nil {
		return nil, err
	}
	r["secrets"] = slices.DeleteFunc(slices.Clone(spec.Sensitive), func(secret string) bool {
		form, err := json.Marshal(secret)
		return secret == "" || err != nil || !bytes.Contains(told, form[1:len(form)-1])
	})
	return r, nil
}

func providerInput(spec *loom.TaskSpec) map[string]any {
	fields := map[string]any{}
	for name, value := range spec.Provider.Fields {
		if value != nil && value != "" { // an empty text is no value
			fields[name] = value
		}
	}
	user, _ := spec.Provider.Fields["ssh_user"].(string)
	input := map[string]any{
		"flavor": spec.Flavor, "image": spec.Image, "sshuser": or(user, or(spec.SSHUser, loom.DefaultSSHUser)),
		"providerid": spec.Results["providerid"], "fields": fields, "ipaddress": nil, "service": nil,
	}
	if spec.PublicKey != "" {
		input["publickey"] = spec.PublicKey
	}
	return input
}

func automatorInput(spec *loom.TaskSpec) map[string]any {
	input := map[string]any{"flavor": spec.Flavor, "image": spec.Image, "sshuser": or(spec.SSHUser, loom.DefaultSSHUser),
		"providerid": spec.Results["providerid"], "fields": map[string]string{}, "ipaddress": nil, "service": nil}
	if address := spec.Addresses[loom.AccessV4]; address != "" {
		input["ipaddress"] = address
	}
	if spec.Service != nil {
		input["service"] = spec.Service.Name
		if spec.Service.Action.Fields != nil {
			input["fields"] = spec.Service.Action.Fields
		}
	}
	return input
}

// servicePayload is the task without the provider's credentials and without the
// secrets of the sign-in: that is lent by the agent.
func servicePayload(spec *loom.TaskSpec, credentials bool) map[string]any {
	payload := spec.Payload(false)
	config, _ := payload["config"].(map[string]any)
	open, _ := loom.SplitFacts(map[string]any{"ssh-auth": spec.Results["ssh-auth"]})
	if open["ssh-auth"] != nil {
		config["ssh-auth"] = open["ssh-auth"]
	}
	described, _ := config["provider"].(map[string]any)
	fields := maps.Clone(spec.Provider.Fields)
	if !credentials {
		maps.DeleteFunc(fields, func(name string, value any) bool {
			return loom.LooksSecret(name) || strings.HasPrefix(name, "ssh_key") && name != "ssh_key_resource" ||
				slices.Contains(spec.Provider.Sealed, name) || hides(spec.Sensitive, value)
		})
	}
	described["provisioner"] = fields
	return payload
}

// hides reports whether a value is one of the sensitive texts, or holds one.
func hides(sensitive []string, value any) bool {
	text := loom.FieldText(value)
	return slices.ContainsFunc(sensitive, func(s string) bool { return s != "" && strings.Contains(text, s) })
}

// settings are those of the provider that concern the plugin's own work.
func settings(spec *loom.TaskSpec) map[string]any {
	s := map[string]any{"connectivity_check": "none"}
	for _, name := range []string{"connectivity_check", "selinux_permissive", "manage_hosts"} {
		if value := spec.Provider.Fields[name]; value != nil && value != "" {
			s[name] = value
		}
	}
	return s
}

// resourcesIn lists the files that the plugin finds in its current directory.
func resourcesIn(files string) map[string]any {
	all := map[string]any{}
	if files == "" {
		return all
	}
	kinds, _ := resource.Types(files)
	for _, kind := range kinds {
		var list []any
		names, _ := resource.Names(files, kind)
		for _, name := range names {
			one := map[string]any{"name": name, "path": kind + "/" + name}
			// The place it links to is <name>/<version>/<name>.
			if target, err := os.Readlink(filepath.Join(files, kind, name)); err == nil {
				if version, err := strconv.Atoi(filepath.Base(filepath.Dir(target))); err == nil {
					one["version"] = version
				}
			}
			list = append(list, one)
		}
		if list != nil {
			all[kind] = list
		}
	}
	return all
}
