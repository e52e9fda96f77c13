package clusters

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/ui"
)

// Names of the controls of settings: those of the fields begin with settingPrefix. The config
// stays the single source of truth: it is sent beside them, and they are laid over it.
const (
	settingPrefix = "setting."
	// editJSON and editFields are buttons that change between the two ways to edit a config.
	editJSON, editFields = "edit-json", "edit-fields"
)

// settingsForm is what a form says of settings.
type settingsForm struct {
	// shown are the keys that had a field, texts what the fields hold.
	shown []string
	texts url.Values
	// present says that the form had a place for settings, asJSON that it shows the config
	// as JSON instead of them.
	present, asJSON bool
}

func readSettings(v url.Values, do string) settingsForm {
	return settingsForm{shown: v[clusterview.SettingShown], texts: v, present: v.Has(clusterview.SettingsMark), asJSON: do == editJSON || do != editFields && v.Get(clusterview.SettingsAsJSON) != ""}
}

// into lays the fields over a config. Fields that say what the config does change nothing, so
// that a number written as text stays one.
func (f *settingsForm) into(config map[string]any, declared []loom.ClusterParameter) map[string]any {
	for i := range declared {
		p := &declared[i]
		if !slices.Contains(f.shown, p.Key) {
			continue
		}
		old, there := loom.ConfigValue(config, p.Key)
		text := strings.ReplaceAll(f.texts.Get(settingPrefix+p.Key), "\r\n", "\n")
		if p.Type != loom.ParameterMultiline && !p.Secret {
			text = strings.TrimSpace(text)
		}
		ticks := p.Type == loom.ParameterBoolean && isTick(old)
		switch {
		case ticks && text == "" && !there, p.Secret && text == "", !ticks && text == loom.FieldText(old):
			continue
		case ticks:
			if value := text == "true"; loom.FieldText(old) != loom.JSONText(value) {
				config = loom.SetConfigValue(config, p.Key, value)
			}
		case text == "":
			config = loom.SetConfigValue(config, p.Key, nil)
		case p.Type == loom.ParameterNumber && json.Valid([]byte(text)) && p.Accepts(text):
			config = loom.SetConfigValue(config, p.Key, json.Number(text))
		default:
			config = loom.SetConfigValue(config, p.Key, text)
		}
	}
	return config
}

// isTick reports whether a checkbox can show a value of a boolean: a macro it cannot.
func isTick(value any) bool {
	return slices.Contains([]string{"", "true", "false"}, loom.FieldText(value))
}

// withoutTyped takes secrets out of a config that is sent to a browser; those that are hidden
// already stay hidden.
func withoutTyped(config map[string]any, declared []loom.ClusterParameter) map[string]any {
	for i := range declared {
		if p := &declared[i]; p.Secret {
			if value, there := loom.ConfigValue(config, p.Key); there && value != loom.Redacted {
				config = loom.SetConfigValue(config, p.Key, nil)
			}
		}
	}
	return config
}

// fields are the settings as a form shows them for a config. changes says that the form is
// for a cluster that is there.
func (f *settingsForm) fields(declared []loom.ClusterParameter, config map[string]any, t *loom.Template, errs ui.FormErrors, changes bool) []clusterview.SettingField {
	var fields []clusterview.SettingField
	for i := range declared {
		p := &declared[i]
		value, _ := loom.ConfigValue(config, p.Key)
		m := settingField(p, value)
		m.Error = errs.For(m.Name)
		if m.Error == "" && filledIn(t, p.Key, m.Value) {
			continue
		}
		if _, fixed := t.Fixed(p.Key); fixed {
			m.LockedWhy = "The template sets it."
		}
		if p.Secret && value == nil && f.texts.Get(m.Name) != "" {
			m.Help = strings.TrimSpace(m.Help + " Enter it again: secrets are not sent back.")
		}
		if p.Restart && changes {
			m.Help = strings.TrimSpace(m.Help + " Changing it restarts the services.")
		}
		fields = append(fields, clusterview.SettingField{Key: p.Key, Secret: p.Secret, Field: m})
	}
	return fields
}

// filledIn reports whether a value is one of the template's that Loom fills in, such as an
// address of a node. Nobody has to know of it; the config as JSON has it.
func filledIn(t *loom.Template, key, value string) bool {
	if t == nil || strings.Count(value, "%") < 2 {
		return false
	}
	given, _ := loom.ConfigValue(t.Defaults.Config, key)
	return loom.FieldText(given) == value
}

// settingField is the control for a setting with a value.
func settingField(p *loom.ClusterParameter, value any) ui.FieldModel {
	m := ui.FieldModel{Name: settingPrefix + p.Key, Label: p.Name(), Help: p.Help, Value: loom.FieldText(value), Optional: !p.Required, Autocomplete: "off"}
	switch {
	case p.Secret:
		m.Kind, m.Autocomplete, m.Value = ui.FieldPassword, "new-password", ""
		if value != nil && value != "" {
			m.Optional, m.Placeholder, m.Help = true, "set", strings.TrimSpace(m.Help+" Leave it empty to keep the value.")
		}
	case p.Type == loom.ParameterMultiline:
		m.Kind, m.Rows = ui.FieldTextarea, 3
	case p.Type == loom.ParameterBoolean && isTick(value):
		m.Kind, m.Checked = ui.FieldCheckbox, m.Value == "true"
	case p.Type == loom.ParameterChoice:
		m.Kind = ui.FieldSelect
		if !p.Required || m.Value == "" {
			m.Options = append(m.Options, ui.Option{Label: "not set", Selected: m.Value == ""})
		}
		for _, o := range p.Options {
			m.Options = append(m.Options, ui.Option{Value: o, Label: o, Selected: o == m.Value})
		}
		if m.Value != "" && !slices.Contains(p.Options, m.Value) {
			m.Options = append(m.Options, ui.Option{Value: m.Value, Label: m.Value, Selected: true})
		}
	case p.Type == loom.ParameterNumber:
		m.Width, m.Attrs = "s", map[string]any{"inputmode": "decimal"}
	case p.Type == loom.ParameterDuration:
		m.Width, m.Placeholder = "s", "30s"
	case p.Type == loom.ParameterSize:
		m.Width, m.Placeholder = "s", "64mb"
	}
	return m
}

// reached leaves out errors of settings that are empty: nobody has come to them yet, and
// sending the form off says so.
func reached(errs ui.FormErrors, fields []clusterview.SettingField) ui.FormErrors {
	errs.Items = slices.DeleteFunc(slices.Clone(errs.Items), func(e ui.FormError) bool {
		return slices.ContainsFunc(fields, func(f clusterview.SettingField) bool { return f.Field.Name == e.Field && f.Field.Value == "" })
	})
	return errs
}

// keysOf are the keys of settings.
func keysOf(declared []loom.ClusterParameter) []string {
	keys := make([]string, len(declared))
	for i := range declared {
		keys[i] = declared[i].Key
	}
	return keys
}

// settings are those of the chosen services of a form for a new cluster.
func (st *settled) settings() []loom.ClusterParameter {
	if st.facts == nil {
		return nil
	}
	return loom.ParametersOf(st.chosen())
}

func (st *settled) chosen() map[string]loom.Service {
	chosen := map[string]loom.Service{}
	if st.facts != nil {
		for _, name := range st.form.services() {
			if s, there := st.facts.Catalog[name]; there {
				chosen[name] = s
			}
		}
	}
	return chosen
}

// fieldKeys are the keys of settings that have a field in the form.
func (st *settled) fieldKeys() []string {
	if st.form.settings.asJSON {
		return nil
	}
	return keysOf(st.settings())
}

// takeSettings lays the fields over the config of the form, and below it the defaults of
// settings that were not there before. A config that is no JSON is edited as such.
func (st *settled) takeSettings() {
	f := &st.form
	config, problem := parseConfig(f.config())
	if problem != "" {
		f.settings.asJSON = true
		return
	}
	declared, chosen := st.settings(), st.chosen()
	taken := f.settings.into(config, declared)
	for i := range declared {
		key := declared[i].Key
		value, there := loom.ConfigValue(taken, key)
		if declared[i].Secret && value == loom.Redacted {
			taken = loom.SetConfigValue(taken, key, nil) // it is not known here
		}
		if there || !f.settings.present || f.settings.asJSON || slices.Contains(f.settings.shown, key) {
			continue
		}
		for _, name := range declared[i].Services() {
			s := chosen[name]
			if value, there := loom.ConfigValue(s.Defaults(), key); there {
				taken = loom.SetConfigValue(taken, key, value)
				break
			}
		}
	}
	if configText(taken) != configText(config) {
		f.setConfig(taken)
	}
}

// settingsParts are the two places that a form for a new cluster has for the config.
func (st *settled) settingsParts(errs ui.FormErrors) (clusterview.SettingsPart, clusterview.ConfigPart) {
	f, declared := &st.form, st.settings()
	asJSON := f.settings.asJSON || errs.For("config") != ""
	if len(declared) == 0 || asJSON {
		field := configField(f.config(), errs)
		return clusterview.SettingsPart{AsJSON: len(declared) > 0}, clusterview.ConfigPart{JSON: &field, HasFields: len(declared) > 0}
	}
	config, _ := parseConfig(f.config())
	config = withoutTyped(config, declared)
	return clusterview.SettingsPart{Fields: f.settings.fields(declared, config, &st.facts.Template, errs, false)}, clusterview.ConfigPart{Config: configText(config)}
}

// secretsOf are the secret keys of the config of a cluster.
func secretsOf(v clusters.ClusterView) *loom.SecretKeys { return loom.SecretKeysOf(v.Services) }

// maskedConfig is the config of a cluster as pages show it.
func maskedConfig(v clusters.ClusterView) map[string]any { return secretsOf(v).Mask(v.Config) }

// takeSettings lays the fields over the config of a form for a cluster that is there.
func (f *changeForm) takeSettings(v clusters.ClusterView) {
	declared := loom.ParametersOf(v.Services)
	if len(f.settings.shown) == 0 || len(declared) == 0 {
		return
	}
	config := maskedConfig(v)
	if f.Config != "" {
		given, problem := parseConfig(f.Config)
		if problem != "" {
			f.settings.asJSON = true
			return
		}
		config = given
	}
	f.Config = configText(f.settings.into(config, declared))
}

// fieldKeys are the keys of settings that have a field in the form.
func (f *changeForm) fieldKeys(v clusters.ClusterView) []string {
	if f.settings.asJSON || f.Kind != loom.ChangeConfigure && f.Kind != loom.ChangeRetry || f.Revision != "" {
		return nil
	}
	return keysOf(loom.ParametersOf(v.Services))
}

// settingsPart is the config in a form for a cluster that is there: as fields, or as JSON.
func (f *changeForm) settingsPart(v clusters.ClusterView, errs ui.FormErrors, rows int) clusterview.FormPart {
	text, declared := f.Config, loom.ParametersOf(v.Services)
	if text == "" {
		text = configText(maskedConfig(v))
	}
	given, problem := parseConfig(text)
	if len(declared) == 0 || f.settings.asJSON || problem != "" || errs.For("config") != "" {
		config := configField(text, errs)
		config.Optional, config.Rows, config.Autofocus = f.Kind == loom.ChangeRetry, rows, f.Open == "config"
		config.Help += " Hidden values stay as they are while they are left as " + loom.Redacted + "."
		return clusterview.FormPart{Settings: &clusterview.ChangeSettings{Config: clusterview.ConfigPart{JSON: &config, HasFields: len(declared) > 0}}}
	}
	present := maskedConfig(v)
	for i := range declared { // what is set stays set, and what was typed is not sent back
		if p := &declared[i]; p.Secret {
			value, _ := loom.ConfigValue(present, p.Key)
			given = loom.SetConfigValue(given, p.Key, value)
		}
	}
	return clusterview.FormPart{Settings: &clusterview.ChangeSettings{
		Fields: f.settings.fields(declared, given, &v.Template, errs, true), Config: clusterview.ConfigPart{Config: configText(given)}}}
}

// settingsAgain are the settings after a check, each with what is wrong with it.
func (f *changeForm) settingsAgain(v clusters.ClusterView, panel clusterview.CheckPanel) []templ.Component {
	if len(f.settings.shown) == 0 || f.settings.asJSON {
		return nil
	}
	part := f.settingsPart(v, ui.FormErrors{}, 0).Settings
	part = f.settingsPart(v, reached(ui.FormErrors{Items: panel.Errors}, part.Fields), 0).Settings
	var again []templ.Component
	for _, field := range part.Fields {
		if !field.Secret {
			again = append(again, clusterview.SettingFieldPart(field, true))
		}
	}
	return again
}

// restarts reports whether a change of the config takes effect only with a restart.
func restarts(v clusters.ClusterView, given map[string]any) bool {
	present := maskedConfig(v)
	return slices.ContainsFunc(loom.ParametersOf(v.Services), func(p loom.ClusterParameter) bool {
		old, _ := loom.ConfigValue(present, p.Key)
		value, _ := loom.ConfigValue(given, p.Key)
		return p.Restart && loom.JSONText(old) != loom.JSONText(value)
	})
}

// settingRows are the settings of a cluster for its page.
func settingRows(actor loom.Actor, v clusters.ClusterView) []clusterview.SettingRow {
	filled, _ := v.ExpandedConfig(nodeOf(v, "").ID)
	var rows []clusterview.SettingRow
	for _, p := range loom.ParametersOf(v.Services) {
		value, there := loom.ConfigValue(v.Config, p.Key)
		row := clusterview.SettingRow{Key: p.Key, Label: p.Name(), Services: strings.Join(p.Services(), ", ")}
		switch set := there && value != nil && value != ""; {
		case !set:
		case secretsOf(v).HidesAt(p.Key):
			row.Secret, row.Source = true, sourceOf(actor, v, &p, value)
		default:
			row.Value, row.Source = loom.FieldText(value), sourceOf(actor, v, &p, value)
			if text, _ := loom.ConfigValue(filled, p.Key); loom.FieldText(text) != row.Value {
				row.Filled = loom.FieldText(text)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// sourceOf says who set a value: the template or a service by default, else whoever made the
// cluster.
func sourceOf(actor loom.Actor, v clusters.ClusterView, p *loom.ClusterParameter, value any) string {
	if of, there := loom.ConfigValue(v.Template.Defaults.Config, p.Key); there && loom.JSONText(of) == loom.JSONText(value) {
		return "template"
	}
	for _, name := range p.Services() {
		s := v.Services[name]
		if of, there := loom.ConfigValue(s.Defaults(), p.Key); there && loom.JSONText(of) == loom.JSONText(value) {
			return "service " + name
		}
	}
	return byWhom(actor, v.Owner.User)
}
