package provisioner

import (
	"encoding/base64"
	"path/filepath"

	"loom/app/loom"
	"loom/provisioner/resource"
)

// sensitive gathers the texts that must not be seen in a task's output.
func sensitive(spec *loom.TaskSpec) []string {
	values := append([]string{spec.PrivateKey.Reveal()}, spec.Sensitive...)
	values = append(values, passwordsIn(spec.Results)...)
	for _, name := range []string{loom.FieldPrivateKey, "ssh_key_passphrase", loom.FieldSSHPassword} {
		value, _ := spec.Provider.Fields[name].(string)
		values = append(values, value)
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && name == loom.FieldPrivateKey {
			values = append(values, string(decoded))
		}
	}
	ofConfig, _ := loom.HiddenTexts(spec.Config, false) // macros expanded
	return append(values, ofConfig...)
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
