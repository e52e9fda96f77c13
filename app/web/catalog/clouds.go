package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"go.yaml.in/yaml/v3"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/formview"
	"loom/views/ui"
)

// openStack is the provider type whose settings a clouds.yaml holds.
const openStack = "openstack"

// cloudsText and cloudsName are the controls with a clouds.yaml and the name of one of
// its clouds.
var cloudsText, cloudsName = form.At("clouds-yaml"), form.At("clouds-name")

// maxClouds bounds a clouds.yaml, in bytes.
const maxClouds = 64 << 10

// cloudsPart fills in the settings of an OpenStack from a clouds.yaml, as OpenStack's own
// client reads it. It comes after the fields, whose values it replaces. The text holds
// passwords and is not shown again.
type cloudsPart struct{ at form.Path }

// Read implements form.Part.
func (c cloudsPart) Read(in *form.Input) {
	text, _ := in.Get(cloudsText.String())
	if strings.TrimSpace(text) == "" {
		return
	}
	name, _ := in.Get(cloudsName.String())
	fields, err := readClouds(text, strings.TrimSpace(name))
	if err != nil {
		in.Fail(cloudsText, "", loom.AsError(err).Message)
		return
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		in.Doc.Set(c.at.To(field), fields[field])
	}
}

// Show implements form.Part.
func (c cloudsPart) Show(out *form.Output) templ.Component {
	text := ui.FieldModel{Name: cloudsText.String(), Label: "clouds.yaml", Kind: ui.FieldTextarea, Mono: true, Rows: 8, Optional: true, Autocomplete: "off",
		Help: "Its values replace those above when you save. Files that it names stay on your computer: paste a certificate authority into its own field."}
	name := ui.FieldModel{Name: cloudsName.String(), Label: "Cloud", Mono: true, Optional: true, Width: "m", Autocomplete: "off", Help: "Which one, if the file has several."}
	text.ID, name.ID = out.ID(text.Name), out.ID(name.Name)
	text.Error, name.Error = out.Claim(cloudsText, text.ID, text.Label), out.Claim(cloudsName, name.ID, name.Label)
	return formview.Stack([]templ.Component{ui.Field(text), ui.Field(name)})
}

// oneCloud is what Loom reads of a cloud in a clouds.yaml.
type oneCloud struct {
	Auth   map[string]any `yaml:"auth"`
	Region string         `yaml:"region_name"`
	Verify *bool          `yaml:"verify"`
}

// readClouds gives the fields of a provider. Errors are for people and hold nothing of the
// text but names of clouds.
func readClouds(text, name string) (map[string]any, error) {
	var file struct {
		Clouds map[string]oneCloud `yaml:"clouds"`
	}
	if len(text) > maxClouds {
		return nil, loom.NewError(loom.Invalid, "This is longer than %d KiB. Paste one cloud only.", maxClouds>>10)
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil || len(file.Clouds) == 0 {
		return nil, loom.NewError(loom.Invalid, "This is no clouds.yaml. Paste the whole file, beginning with the line “clouds:”.")
	}
	names := slices.Sorted(maps.Keys(file.Clouds))
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	given, there := file.Clouds[name]
	if !there {
		return nil, loom.NewError(loom.Invalid, "The file has the clouds %s. Enter one of them below.", strings.Join(names, ", "))
	}
	fields := map[string]any{}
	set := func(field string, value any) {
		if text := strings.TrimSpace(fmt.Sprint(value)); value != nil && text != "" {
			fields[field] = text
		}
	}
	for _, m := range []struct{ theirs, ours string }{
		{"auth_url", "openstack_auth_url"}, {"username", "api_user"}, {"password", "api_password"}, {"project_id", "openstack_tenant"}, {"project_name", "openstack_tenant"},
		{"tenant_name", "openstack_tenant"}, {"domain_name", "openstack_domain"}, {"user_domain_name", "openstack_user_domain"}, {"project_domain_name", "openstack_project_domain"},
		{"application_credential_id", "application_credential_id"}, {"application_credential_secret", "application_credential_secret"},
	} {
		set(m.ours, given.Auth[m.theirs])
	}
	// Loom names domains; of those given by id only the usual one has a known name.
	for _, m := range []struct{ theirs, ours string }{{"user_domain_id", "openstack_user_domain"}, {"project_domain_id", "openstack_project_domain"}, {"domain_id", "openstack_domain"}} {
		switch id := given.Auth[m.theirs]; {
		case id == nil || fields[m.ours] != nil:
		case id == "default":
			set(m.ours, "Default")
		default:
			return nil, loom.NewError(loom.Invalid, "The file gives a domain by its id (%s). Replace it by the domain's name.", m.theirs)
		}
	}
	set("openstack_region", given.Region)
	if given.Verify != nil {
		fields["openstack_ssl_verify_peer"] = *given.Verify
	}
	if fields["openstack_auth_url"] == nil {
		return nil, loom.NewError(loom.Invalid, "The cloud %s has no auth_url. Paste its whole entry.", name)
	}
	return fields, nil
}
