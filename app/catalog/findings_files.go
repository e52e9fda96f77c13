package catalog

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"loom/app/loom"
)

// Of the shell automator (plugins.md 3.2): the field that may name a script, and
// the type of the resource that it then names.
const (
	shellAutomator = "shell"
	scriptField    = "script"
	scriptType     = "scripts"
)

// Of the chef-solo automator (plugins.md 3.1): the field that names recipes and roles,
// and the types of the resources that they are in.
const (
	chefAutomator = "chef-solo"
	runListField  = "run_list"
	cookbookType  = "cookbooks"
	roleType      = "roles"
)

// scriptEndings tell the name of a script from a command, which may be anything
// that is in the path of a machine.
var scriptEndings = []string{".sh", ".bash", ".zsh", ".ksh", ".py", ".rb", ".pl", ".php", ".js", ".lua", ".awk", ".tcl"}

// shippedScripts are always there (plugins.md 3.2).
var shippedScripts = []string{"chef_client_bootstrap.sh", "coopr_service_manager.sh", "json_substitution_example.sh"}

// roleEndings are those of the files that roles are in.
var roleEndings = []string{".json", ".rb"}

// NamedFile is a file of its automator that an action names: a script, or a cookbook or
// role of a run list.
type NamedFile struct {
	// Field is the field of the action, Name what the file is called there.
	Field, Name string
	// Value is what a finding has of it: the name, role[NAME] of a role.
	Value string
	// Refs are the resources that it may be, the usual one first; one of them must be there.
	Refs []loom.ResourceRef
}

// FilesOf lists the files that an action names, each once. What may as well be a path or a
// command is none of them, nor is a script that is always there.
func FilesOf(plugin *loom.PluginType, action loom.ServiceAction) []NamedFile {
	switch action.Type {
	case shellAutomator:
		return scriptOf(plugin, action)
	case chefAutomator:
		return runListOf(plugin, action)
	}
	return nil
}

func scriptOf(plugin *loom.PluginType, action loom.ServiceAction) []NamedFile {
	_, takes := plugin.Parameters["admin"].Fields[scriptField]
	_, has := plugin.ResourceTypes[scriptType]
	script := action.Fields[scriptField]
	if !takes || !has || strings.ContainsAny(script, "/ \t") || slices.Contains(shippedScripts, script) ||
		!slices.Contains(scriptEndings, strings.ToLower(path.Ext(script))) {
		return nil
	}
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: plugin.Name, Type: scriptType, Name: script}
	return []NamedFile{{Field: scriptField, Name: script, Value: script, Refs: []loom.ResourceRef{ref}}}
}

var runItem = regexp.MustCompile(`^(?:(recipe|role)\[([A-Za-z0-9_.:@-]+)\]|([A-Za-z0-9_.:@-]+))$`)

func runListOf(plugin *loom.PluginType, action loom.ServiceAction) []NamedFile {
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
		file := NamedFile{Field: runListField, Name: name, Value: value, Refs: runRefs(plugin.Name, value)}
		if _, has := plugin.ResourceTypes[file.Refs[0].Type]; has && !slices.ContainsFunc(files, func(f NamedFile) bool { return f.Value == value }) {
			files = append(files, file)
		}
	}
	return files
}

// runRefs are the resources that what a run list names may be.
func runRefs(plugin, value string) []loom.ResourceRef {
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: plugin, Type: cookbookType, Name: value}
	role, isRole := strings.CutPrefix(strings.TrimSuffix(value, "]"), "role[")
	if !isRole {
		return []loom.ResourceRef{ref}
	}
	var refs []loom.ResourceRef
	for _, ending := range roleEndings {
		ref.Type, ref.Name = roleType, role+ending
		refs = append(refs, ref)
	}
	return refs
}

// MissedFile is the file that a finding of a service misses; false for any other finding.
func MissedFile(service *loom.Service, f loom.Finding) (loom.ResourceRef, bool) {
	at, is := strings.CutPrefix(f.Field, "/provisioner/actions/")
	action, field, _ := strings.Cut(at, "/fields/")
	if !is || f.Code != loom.FindingDangling || f.Kind != loom.KindService || f.Name != service.Name {
		return loom.ResourceRef{}, false
	}
	switch automator := service.Provisioner.Actions[loom.TaskAction(action)].Type; {
	case automator == shellAutomator && field == scriptField:
		return loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: automator, Type: scriptType, Name: f.Value}, true
	case automator == chefAutomator && field == runListField:
		return runRefs(automator, f.Value)[0], true
	}
	return loom.ResourceRef{}, false
}

// files looks whether the files that an action names are there.
func (f *finder) files(plugin *loom.PluginType, action loom.ServiceAction, name loom.TaskAction) {
	if f.asked != nil && action.Type == shellAutomator && f.asked.Kind == string(loom.KindAutomatorType) && f.asked.Plugin == plugin.Name {
		for _, text := range action.Fields { // as an argument, or a script without an ending
			if mentions(text, f.asked.Name) {
				f.resource(*f.asked, "")
			}
		}
	}
	for _, file := range FilesOf(plugin, action) {
		f.anyOf(file.Refs, pointer("provisioner", "actions", name, "fields", file.Field), file.Value, file.Name)
	}
}

// resource looks whether a plugin resource is live, or will be with the next sync.
func (f *finder) resource(ref loom.ResourceRef, field string) {
	f.anyOf([]loom.ResourceRef{ref}, field, ref.Name, ref.Name)
}

// anyOf looks whether one of some plugin resources is there.
func (f *finder) anyOf(refs []loom.ResourceRef, field, value, name string) {
	if f.asked != nil {
		if user := (EntryName{Kind: f.about.Kind, Name: f.about.Name}); slices.Contains(refs, *f.asked) && !slices.Contains(f.users, user) {
			f.users = append(f.users, user)
		}
		return
	}
	if slices.ContainsFunc(refs, func(r loom.ResourceRef) bool { return f.resources[r] }) {
		return
	}
	ref := refs[0]
	f.say(loom.FindingError, loom.FindingDangling, field, value,
		fmt.Sprintf("The %s “%s” is neither active nor staged.", FileWord(ref.Type), name),
		fmt.Sprintf("Upload it to /v2/plugins/%s/%s/%s/%s and stage it, or correct the name.", ref.Kind, ref.Plugin, ref.Type, ref.Name))
}

// FileWord is a resource type as people call one of its files: "data bag".
func FileWord(resourceType string) string {
	return strings.TrimSuffix(strings.ReplaceAll(resourceType, "_", " "), "s")
}

// mentions reports whether a text has a file's name as a word. What may be part of a name
// stands neither before nor behind it, but for the dots that end a sentence.
func mentions(text, name string) bool {
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
