package loom

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// The automators whose fields name files within a text: the field, and the
// types of the resources that it names.
const (
	shellAutomator = "shell"
	scriptField    = "script"
	scriptType     = "scripts"

	chefAutomator = "chef-solo"
	runListField  = "run_list"
	cookbookType  = "cookbooks"
	roleType      = "roles"
	dataBagType   = "data_bags"

	puppetAutomator = "puppet"
	classesField    = "classes"
	manifestField   = "manifest"
	moduleType      = "modules"
)

// scriptEndings tell the name of a script from a command, which may be anything
// that is in the path of a machine.
var scriptEndings = []string{".sh", ".bash", ".zsh", ".ksh", ".py", ".rb", ".pl", ".php", ".js", ".lua", ".awk", ".tcl"}

// shippedScripts are always there.
var shippedScripts = []string{"chef_client_bootstrap.sh", "coopr_service_manager.sh", "json_substitution_example.sh"}

// roleEndings are those of the files that roles are in.
var roleEndings = []string{".json", ".rb"}

// NamedFile is a file of its automator that an action names within a text: a script, a
// cookbook or role of a run list, or the module of a class.
type NamedFile struct {
	// Field is the field of the action, Name what the file is called there.
	Field, Name string
	// Value is what a finding has of it: the name, role[NAME] of a role.
	Value string
	// Refs are the resources that it may be, the usual one first; one of them must be there.
	Refs []ResourceRef
}

// FilesOf lists the files that must be there for an action, each once, but for those that a
// field of a resource type names alone. What may as well be a path or a command is none of
// them, nor is a script that is always there.
func FilesOf(plugin *PluginType, action ServiceAction) []NamedFile {
	switch action.Type {
	case shellAutomator:
		return scriptOf(plugin, action)
	case chefAutomator:
		return runListOf(plugin, action)
	case puppetAutomator:
		return modulesOf(plugin, action)
	}
	return nil
}

// RefsOf are the resources that a value of NamedFile may be in a field of an automator, the
// usual one first; none where the field names no files within a text.
func RefsOf(automator, field, value string) []ResourceRef {
	ref := ResourceRef{Kind: string(KindAutomatorType), Plugin: automator, Name: value}
	switch {
	case automator == shellAutomator && field == scriptField:
		ref.Type = scriptType
	case automator == puppetAutomator && field == classesField:
		ref.Type = moduleType
	case automator == chefAutomator && field == runListField:
		role, isRole := strings.CutPrefix(strings.TrimSuffix(value, "]"), "role[")
		if isRole {
			var refs []ResourceRef
			for _, ending := range roleEndings {
				ref.Type, ref.Name = roleType, role+ending
				refs = append(refs, ref)
			}
			return refs
		}
		ref.Type = cookbookType
	default:
		return nil
	}
	return []ResourceRef{ref}
}

// named appends a file that a field names, unless the plugin has no such resources or it is
// there already.
func named(files []NamedFile, plugin *PluginType, field, name, value string) []NamedFile {
	refs := RefsOf(plugin.Name, field, value)
	if _, has := plugin.ResourceTypes[refs[0].Type]; !has || slices.ContainsFunc(files, func(f NamedFile) bool { return f.Value == value }) {
		return files
	}
	return append(files, NamedFile{Field: field, Name: name, Value: value, Refs: refs})
}

func scriptOf(plugin *PluginType, action ServiceAction) []NamedFile {
	_, takes := plugin.Parameters["admin"].Fields[scriptField]
	script := action.Fields[scriptField]
	if !takes || strings.ContainsAny(script, "/ \t") || slices.Contains(shippedScripts, script) ||
		!slices.Contains(scriptEndings, strings.ToLower(path.Ext(script))) {
		return nil
	}
	return named(nil, plugin, scriptField, script, script)
}

var runItem = regexp.MustCompile(`^(?:(recipe|role)\[([A-Za-z0-9_.:@-]+)\]|([A-Za-z0-9_.:@-]+))$`)

func runListOf(plugin *PluginType, action ServiceAction) []NamedFile {
	var files []NamedFile
	for _, item := range strings.Split(strings.Join(strings.Fields(action.Fields[runListField]), ""), ",") {
		parts := runItem.FindStringSubmatch(item)
		if parts == nil {
			continue
		}
		name, value := parts[2]+parts[3], item
		if parts[1] != "role" {
			name, _, _ = strings.Cut(name, "@") // a version
			name, _, _ = strings.Cut(name, "::")
			value = name
		}
		files = named(files, plugin, runListField, name, value)
	}
	return files
}

// modulesOf lists the modules of the classes of Puppet: web::service is in the module web.
func modulesOf(plugin *PluginType, action ServiceAction) []NamedFile {
	var files []NamedFile
	for class := range strings.SplitSeq(action.Fields[classesField], ",") {
		module, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(class), "::"), "::")
		if module != "" {
			files = named(files, plugin, classesField, module, module)
		}
	}
	return files
}

// NamedBy reports whether an action names a resource of its automator: FilesOf, a field of
// its type, and scripts also as an argument or without an ending.
func (r ResourceRef) NamedBy(plugin *PluginType, action ServiceAction) bool {
	if r.Kind != string(KindAutomatorType) || r.Plugin != plugin.Name || action.Type != plugin.Name {
		return false
	}
	for field, text := range action.Fields {
		if schema, known := plugin.Schema(field); known && schema.ResourceType == r.Type && strings.TrimSpace(text) == r.Name {
			return true
		}
		if action.Type == shellAutomator && r.Type == scriptType && Mentions(text, r.Name) {
			return true
		}
	}
	return slices.ContainsFunc(FilesOf(plugin, action), func(f NamedFile) bool { return slices.Contains(f.Refs, r) })
}

// UsedBy reports whether an action may run or read a resource of its automator: what it
// names, and what no field can name: data bags, which recipes name, and the modules that
// manifests name.
func (r ResourceRef) UsedBy(plugin *PluginType, action ServiceAction) bool {
	if r.Kind != string(KindAutomatorType) || r.Plugin != plugin.Name || action.Type != plugin.Name {
		return false
	}
	switch action.Type {
	case chefAutomator:
		if r.Type == dataBagType {
			return true
		}
	case puppetAutomator:
		if r.Type == moduleType && strings.TrimSpace(action.Fields[manifestField]) != "" {
			return true
		}
	}
	return r.NamedBy(plugin, action)
}

// Mentions reports whether a text has a file's name as a word. What may be part of a name
// stands neither before nor behind it, but for the dots that end a sentence.
func Mentions(text, name string) bool {
	for name != "" {
		i := strings.Index(text, name)
		if i < 0 {
			return false
		}
		behind := strings.TrimLeft(text[i+len(name):], ".")
		if (i == 0 || !partOfName(text[i-1])) && (behind == "" || !partOfName(behind[0])) {
			return true
		}
		text = text[i+len(name):]
	}
	return false
}

func partOfName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c >= 0x80
}

// SetsUp reports whether an action puts a service on a machine as its files say, so that
// newer files call for it again.
func (a TaskAction) SetsUp() bool {
	return a == ActionInstall || a == ActionConfigure || a == ActionStart
}

// FileKey names a resource of an automator type as nodes keep it: "shell/scripts/web.sh".
func (r ResourceRef) FileKey() string { return r.Plugin + "/" + r.Type + "/" + r.Name }

// FileWord is a resource type as people call one of its files: "data bag".
func FileWord(resourceType string) string {
	return strings.TrimSuffix(strings.ReplaceAll(resourceType, "_", " "), "s")
}
