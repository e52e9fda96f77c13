package clusterview

import "loom/views/ui"

// Names of hidden controls: SettingShown names each setting that has a field, SettingsMark
// says that the form has a place for them, SettingsAsJSON that it shows the config as JSON.
const (
	SettingShown   = "settingShown"
	SettingsMark   = "settings"
	SettingsAsJSON = "asJSON"
)

// SettingField is a setting as a field.
type SettingField struct {
	Key    string
	Secret bool
	Field  ui.FieldModel
}

// SettingsPart are the settings of a new cluster; AsJSON says that they are not shown because
// the config is edited as JSON.
type SettingsPart struct {
	Fields []SettingField
	AsJSON bool
}

// ConfigPart is a config: JSON is its field, nil where Config is sent along unseen. HasFields
// says that parts of it can be edited as fields.
type ConfigPart struct {
	JSON      *ui.FieldModel
	Config    string
	HasFields bool
}

// ChangeSettings is the config of a cluster that is there, in a form.
type ChangeSettings struct {
	Fields []SettingField
	Config ConfigPart
}

// SettingRow is a setting of a cluster, as its page shows it.
type SettingRow struct {
	Key, Label, Value string
	// Secret says that a value is set and not shown, Filled what becomes of one with macros.
	Secret bool
	Filled string
	// Source says who set the value: the template, a service, or somebody for this cluster.
	Source string
	// Services read it.
	Services string
}
