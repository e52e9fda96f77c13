package provisioner

import (
	"os"
	"path/filepath"
	"strconv"

	"loom/app/loom"
	"loom/provisioner/resource"
)

// filesRun gives the versions of the files that a service's action has run, by
// loom.ResourceRef.FileKey; nil where that is not known, or of no account. set is the
// directory that the files were taken from: its links lead to <version>/<name>.
func (r *Runner) filesRun(spec *loom.TaskSpec, set string) map[string]int {
	a, ok := r.Automators.Get(spec.Service.Action.Type)
	if !ok || set == "" || !spec.Action.SetsUp() {
		return nil
	}
	plugin := a.Type()
	if len(plugin.ResourceTypes) == 0 {
		return nil
	}
	// A machine that an older release prepared may still have older files.
	if _, known := preparedWith(spec, plugin.Name); !known {
		return nil
	}
	files := map[string]int{}
	kind := string(loom.KindAutomatorType)
	for typ := range plugin.ResourceTypes {
		names, _ := resource.Names(below(set, kind, plugin.Name), typ) // none where there are none
		for _, name := range names {
			ref := loom.ResourceRef{Kind: kind, Plugin: plugin.Name, Type: typ, Name: name}
			if !ref.UsedBy(&plugin, spec.Service.Action) {
				continue
			}
			target, err := os.Readlink(filepath.Join(below(set, kind, plugin.Name), typ, name))
			if err != nil {
				continue // a version that is not known
			}
			if version, err := strconv.Atoi(filepath.Base(filepath.Dir(target))); err == nil {
				files[ref.FileKey()] = version
			}
		}
	}
	return files
}
