package provisioner

import (
	"encoding/base64"
	"path/filepath"
	"regexp"

	"loom/app/loom"
	"loom/provisioner/resource"
)

// secretKey matches keys of a cluster's config whose values are hidden in logs,
// though they are not secrets otherwise (provisioner.md 7).
var secretKey = regexp.MustCompile(`(?i)(password|passwd|secret|token|private_key|api_key)`)

// sensitive gathers the texts that must not be seen in a task's output.
func sensitive(spec *loom.TaskSpec) []string {
	values := append([]string{spec.PrivateKey.Reveal()}, spec.Sensitive...)
	values = append(values, passwordsIn(spec.Results)...)
	for _, name := range []string{"ssh_keyfile", "ssh_key_passphrase", loom.FieldSSHPassword} {
		value, _ := spec.Provider.Fields[name].(string)
		values = append(values, value)
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && name == "ssh_keyfile" {
			values = append(values, string(decoded))
		}
	}
	return append(values, secretsIn(spec.Config, false)...)
}

// secretsIn finds texts below keys that look like secrets.
func secretsIn(value any, secret bool) (found []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			found = append(found, secretsIn(inner, secret || secretKey.MatchString(key))...)
		}
	case []any:
		for _, inner := range v {
			found = append(found, secretsIn(inner, secret)...)
		}
	case string:
		if secret {
			found = append(found, v)
		}
	}
	return found
}

// secretFiles reads the secret resources that the task's plugins can get at.
func secretFiles(set string, spec *loom.TaskSpec) (values []string) {
	plugins := []string{filepath.Join("providertypes", spec.Provider.Type)}
	for _, name := range spec.Automators {
		plugins = append(plugins, filepath.Join("automatortypes", name))
	}
	for _, plugin := range plugins {
		for _, kind := range loom.SecretResourceTypes {
			files := filepath.Join(set, plugin)
			names, _ := resource.Names(files, kind)
			for _, name := range names {
				// Anything larger is no key.
				if content, err := resource.Read(files, kind, name, 64<<10); err == nil {
					values = append(values, string(content))
				}
			}
		}
	}
	return values
}
