package external

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loom/app/loom"
)

// ManifestName is the file that makes a directory a plugin.
const ManifestName = "plugin.json"

// maxManifest is the greatest manifest, in bytes.
const maxManifest = 1 << 20

// systemDirs are searched after those of LOOM_PLUGIN_PATH.
var systemDirs = []string{"/etc/loom/plugins", "/usr/local/lib/loom/plugins", "/usr/lib/loom/plugins"}

// SearchPath returns the directories to look for plugins in, in order: those of
// LOOM_PLUGIN_PATH, then the system's.
func SearchPath(path string) []string {
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, systemDirs...)
}

// Plugin is a plugin that can be run.
type Plugin struct {
	// Dir is absolute and without links; Program is what runs, with Args, of which
	// the first is its name.
	Dir, Program string
	Args         []string
	Manifest     Manifest
	// ManifestSHA256 and ProgramSHA256 are in hex.
	ManifestSHA256, ProgramSHA256 string
	// Warnings are about the manifest.
	Warnings []string
}

// Trouble is a plugin that was found and is not used.
type Trouble struct {
	// Dir is where it is; Name is what its manifest calls it, or its directory.
	Dir, Name string
	Err       error
	// Shadowed: only because one of that name was found earlier.
	Shadowed bool
}

// Carried are the names of built-in types that can be run, by kind.
type Carried struct{ Providers, Automators []string }

// Found is what a search came to.
type Found struct {
	Plugins []*Plugin
	Refused []Trouble
	// Warnings are about types that are left to built-in plugins, and manifests.
	Warnings []string
	// types are the plugins by kind and type.
	types map[[2]string]*Plugin
}

// Failed lists what was refused for a fault of its own.
func (f *Found) Failed() []Trouble {
	return slices.DeleteFunc(slices.Clone(f.Refused), func(t Trouble) bool { return t.Shadowed })
}

// Types lists the type names of a kind that the plugins carry, sorted.
func (f *Found) Types(kind string) []string {
	var names []string
	for key := range f.types {
		if key[0] == kind {
			names = append(names, key[1])
		}
	}
	slices.Sort(names)
	return names
}

// Plugin returns the plugin that carries a type, or nil.
func (f *Found) Plugin(kind, typeName string) *Plugin { return f.types[[2]string{kind, typeName}] }

// Load reads the plugin in a directory and checks that it may be run. The error
// says what is wrong and how to mend it.
func (h *Host) Load(dir string) (*Plugin, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return nil, loom.NewError(loom.NotFound, "There is no plugin in %s: %v.", dir, errors.Unwrap(err))
	}
	data, err := readLimited(filepath.Join(real, ManifestName), maxManifest)
	if err != nil {
		return nil, loom.NewError(loom.NotFound, "There is no plugin in %s: %v.", dir, err)
	}
	p := &Plugin{Dir: real}
	if p.Manifest, p.Warnings, err = DecodeManifest(data); err != nil {
		return nil, err
	}
	if err := safe(real); err != nil {
		return nil, loom.NewError(loom.Invalid, "The plugin is not safe to run: %v.", err)
	}
	if p.Program, err = h.find(real, p.Manifest.Command); err != nil {
		return nil, loom.NewError(loom.Invalid, "command: %v.", err)
	}
	if real, err := filepath.EvalSymlinks(p.Program); err != nil {
		return nil, err
	} else if err := safeFile(real); err != nil {
		return nil, loom.NewError(loom.Invalid, "The plugin is not safe to run: %v.", err)
	}
	if h.switches() {
		for _, path := range []string{real, p.Program} {
			if err := reaches(h.User, path); err != nil {
				return nil, loom.NewError(loom.Invalid, "The plugin cannot be run as the user %s: %v.", h.User.Name, err)
			}
		}
	}
	p.Args = arguments(real, p.Manifest.Command)
	sum := sha256.Sum256(data)
	p.ManifestSHA256 = hex.EncodeToString(sum[:])
	if p.ProgramSHA256, err = fingerprint(real, p.Program, p.Manifest.Command); err != nil {
		return nil, err
	}
	return p, nil
}

// Discover searches directories for plugins. Of several with one name the first
// counts, also when it cannot be used: an older version must not come up by
// surprise. Types of the carried ones stay with them unless the manifest replaces
// them. Two plugins with one type are both refused.
func (h *Host) Discover(dirs []string, built Carried) *Found {
	f := &Found{types: map[[2]string]*Plugin{}}
	named := map[string]string{}
	for _, dir := range dirs {
		for _, place := range places(dir) {
			p, err := h.Load(place)
			name := nameIn(place)
			if p != nil {
				name = p.Manifest.Name
			}
			switch first, taken := named[name]; {
			case taken:
				f.Refused = append(f.Refused, Trouble{Dir: place, Name: name, Shadowed: true,
					Err: fmt.Errorf("a plugin of this name was found before, in %s", first)})
				continue
			case err != nil:
				f.Refused = append(f.Refused, Trouble{Dir: place, Name: name, Err: err})
			default:
				f.Plugins = append(f.Plugins, p)
			}
			named[name] = place
		}
	}
	f.settle(built)
	return f
}

// settle decides who carries which type.
func (f *Found) settle(built Carried) {
	claims := map[[2]string][]*Plugin{}
	for _, p := range f.Plugins {
		for name, t := range p.Manifest.Types {
			carried := built.Providers
			if t.Kind == KindAutomator {
				carried = built.Automators
			}
			if slices.Contains(carried, name) && !slices.Contains(p.Manifest.Replaces, name) {
				f.Warnings = append(f.Warnings, fmt.Sprintf("plugin %s: the %s type “%s” is built in and stays so; “replaces” in the manifest would take it over", p.Manifest.Name, t.Kind, name))
				continue
			}
			key := [2]string{t.Kind, name}
			claims[key] = append(claims[key], p)
		}
		for _, w := range p.Warnings {
			f.Warnings = append(f.Warnings, "plugin "+p.Manifest.Name+": "+w)
		}
	}
	refused := map[*Plugin]error{}
	for _, key := range slices.SortedFunc(maps.Keys(claims), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		if claimants := claims[key]; len(claimants) > 1 {
			var names []string
			for _, p := range claimants {
				names = append(names, fmt.Sprintf("%s (%s)", p.Manifest.Name, p.Dir))
			}
			err := loom.NewError(loom.Invalid, "The %s type “%s” is declared by several plugins: %s; all of them are refused, remove all but one.", key[0], key[1], strings.Join(names, ", "))
			for _, p := range claimants {
				refused[p] = err
			}
		}
	}
	f.Plugins = slices.DeleteFunc(f.Plugins, func(p *Plugin) bool {
		err := refused[p]
		if err != nil {
			f.Refused = append(f.Refused, Trouble{Dir: p.Dir, Name: p.Manifest.Name, Err: err})
		}
		return err != nil
	})
	for key, claimants := range claims {
		if refused[claimants[0]] == nil {
			f.types[key] = claimants[0]
		}
	}
	slices.Sort(f.Warnings)
}

// places lists the directories below dir that have a manifest.
func places(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // most of the directories need not be there
	}
	var found []string
	for _, entry := range entries {
		place := filepath.Join(dir, entry.Name())
		if info, err := os.Stat(filepath.Join(place, ManifestName)); err == nil && info.Mode().IsRegular() {
			found = append(found, place)
		}
	}
	return found
}

// nameIn is the name of a plugin that may not be usable.
func nameIn(place string) string {
	var m struct {
		Name string `json:"name"`
	}
	data, err := readLimited(filepath.Join(place, ManifestName), maxManifest)
	if err != nil || json.Unmarshal(data, &m) != nil || !pluginName.MatchString(m.Name) {
		return filepath.Base(place)
	}
	return m.Name
}

func readLimited(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
