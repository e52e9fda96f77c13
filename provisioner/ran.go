package provisioner

import (
	"os"
	"path/filepath"
	"strconv"

	"loom/app/loom"
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
	for _, ref := range loom.FilesOf(&plugin, spec.Service.Action) {
		target, err := os.Readlink(filepath.Join(below(set, ref.Kind, ref.Plugin), ref.Type, ref.Name))
		if err != nil {
			continue // a command, or a path
		}
		if version, err := strconv.Atoi(filepath.Base(filepath.Dir(target))); err == nil {
			files[ref.FileKey()] = version
		}
	}
	return files
}
