package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/provisioner/external"
)

// SettingsName is the file beside plugin.json that says how to try the plugin.
const SettingsName = "loom-test.json"

// Settings say how to try the types of a plugin.
type Settings struct {
	Types map[string]TypeSettings `json:"types"`
}

// TypeSettings say how to try one type. In texts of fields and commands {dir}
// stands for an empty directory of the run.
type TypeSettings struct {
	// Fields of the provider, or of the service action; what is missing is made up.
	Fields map[string]any `json:"fields"`
	// Wrong are fields whose credentials are refused.
	Wrong map[string]any `json:"wrong"`
	// Broken and Slow are fields of a service action that make it fail, and last.
	Broken map[string]any `json:"broken"`
	Slow   map[string]any `json:"slow"`
	Flavor string         `json:"flavor"`
	Image  string         `json:"image"`
	// Harmless says that the actions cost nothing, so that all of them are tried
	// without being asked for.
	Harmless bool `json:"harmless"`
	// NoConfirm leaves out CONFIRM.
	NoConfirm bool `json:"no_confirm"`
	// Faults are commands that make the cloud misbehave; they get the number.
	Faults map[Fault][]string `json:"faults"`
	// Machines is a command that prints a line “key id” for every machine there is.
	Machines []string `json:"machines"`
	// Actions of an automator to try; all that it has when empty.
	Actions []string `json:"actions"`
}

// ReadSettings reads a settings file. A missing one is no error: nothing is said
// then.
func ReadSettings(file string) (Settings, error) {
	var s Settings
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return s, loom.NewError(loom.Invalid, "%s cannot be read: %v.", file, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return s, loom.NewError(loom.Invalid, "%s cannot be read: something follows the JSON object.", file)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Types)) {
		for fault := range s.Types[name].Faults {
			if !slices.Contains(Faults, fault) {
				return s, loom.NewError(loom.Invalid, "%s: types.%s.faults: there is no fault “%s”; there are %v.", file, name, fault, Faults)
			}
		}
	}
	return s, nil
}

// in puts the directory of the run in the place of {dir}.
func (s TypeSettings) in(dir string) TypeSettings {
	for _, fields := range []*map[string]any{&s.Fields, &s.Wrong, &s.Broken, &s.Slow} {
		*fields = maps.Clone(*fields)
		for name, value := range *fields {
			if text, ok := value.(string); ok {
				(*fields)[name] = strings.ReplaceAll(text, "{dir}", dir)
			}
		}
	}
	faults := map[Fault][]string{}
	for fault, command := range s.Faults {
		faults[fault] = placed(command, dir)
	}
	s.Faults, s.Machines = faults, placed(s.Machines, dir)
	return s
}

func placed(command []string, dir string) []string {
	out := make([]string, len(command))
	for i, word := range command {
		out[i] = strings.ReplaceAll(word, "{dir}", dir)
	}
	return out
}

// fields completes the given ones with made-up values for what the type requires.
func (s TypeSettings) fields(t loom.PluginType) map[string]any {
	made := map[string]any{}
	for _, group := range []string{"admin", "user"} {
		g := t.Parameters[group]
		for name, f := range g.Fields {
			if f.Default != nil {
				made[name] = f.Default
			}
		}
		if len(g.Required) > 0 {
			for _, name := range g.Required[0] {
				if made[name] == nil {
					made[name] = invented(name, g.Fields[name])
				}
			}
		}
	}
	maps.Copy(made, s.Fields)
	return made
}

func invented(name string, f loom.FieldSchema) any {
	switch {
	case f.IsSensitive():
		return "planted-secret-" + name
	case len(f.Options) > 0:
		return f.Options[0]
	case f.Type == "checkbox":
		return "true"
	case f.Type == "number" && f.Min != nil:
		return strconv.FormatFloat(*f.Min, 'f', -1, 64)
	case f.Type == "number":
		return "1"
	}
	return "sample-" + name
}

// secrets are the values of sensitive fields.
func secrets(t loom.PluginType, fields map[string]any) (found []string) {
	for name, value := range fields {
		text, ok := value.(string)
		if ok && len(text) >= 4 && (t.Parameters["admin"].Fields[name].IsSensitive() || t.Parameters["user"].Fields[name].IsSensitive()) {
			found = append(found, text)
		}
	}
	return found
}

// command runs a command of the settings in the plugin's directory.
func command(ctx context.Context, p *external.Plugin, words []string, extra ...string) (string, error) {
	name := words[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(p.Dir, name)
	}
	cmd := exec.CommandContext(ctx, name, append(slices.Clone(words[1:]), extra...)...)
	cmd.Dir = p.Dir
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(errOut.String()))
	}
	return string(out), err
}
