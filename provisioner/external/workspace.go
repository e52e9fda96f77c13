package external

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// workspace is the private directory of one call:
//
//	<dir>/tmp    LOOM_SCRATCH, the plugin's
//	<dir>/lent   SSH configuration, agent socket: written by the host only
//	<dir>/files  copies of the resources, for plugins that run as another user
//	<dir>/none   the current directory of plugins without resources
type workspace struct {
	dir string
	// owner is nil unless plugins run as another user.
	owner *User
	files int
}

func (h *Host) workspace() (*workspace, error) {
	dir, err := os.MkdirTemp(h.Scratch, "loom-plugin-")
	if err != nil {
		return nil, fmt.Errorf("make the scratch directory of a plugin: %w", err)
	}
	w := &workspace{dir: dir}
	if h.switches() {
		w.owner = h.User
	}
	if err := w.lay(); err != nil {
		return nil, errors.Join(fmt.Errorf("make the scratch directory of a plugin: %w", err), w.remove())
	}
	return w, nil
}

func (w *workspace) lay() error {
	for name, mode := range map[string]fs.FileMode{"tmp": 0o700, "lent": 0o750, "files": 0o750, "none": 0o555} {
		if err := os.Mkdir(w.path(name), mode); err != nil {
			return err
		}
	}
	if w.owner == nil {
		return nil
	}
	return errors.Join(os.Chmod(w.dir, 0o711), os.Chown(w.path("tmp"), w.owner.UID, w.owner.GID),
		os.Chown(w.path("lent"), -1, w.owner.GID), os.Chown(w.path("files"), -1, w.owner.GID))
}

func (w *workspace) path(elements ...string) string {
	return filepath.Join(append([]string{w.dir}, elements...)...)
}

func (w *workspace) scratch() string { return w.path("tmp") }

// lend gives a file of the host to the plugin, to read only.
func (w *workspace) lend(name string, content []byte, mode fs.FileMode) (string, error) {
	path := w.path("lent", name)
	if err := os.WriteFile(path, content, mode); err != nil {
		return "", err
	}
	return path, w.give(path, mode)
}

// give lets the plugin's group have what the owner may, but for writing.
func (w *workspace) give(path string, mode fs.FileMode) error {
	if w.owner == nil {
		return nil
	}
	return errors.Join(os.Chown(path, -1, w.owner.GID), os.Chmod(path, mode&0o700|(mode&0o500)>>3))
}

// resources gives the current directory of the plugin. Another user cannot read
// the tenant's files where they are, and must not: it gets those of its type,
// linked where everybody may read them and copied where not.
func (w *workspace) resources(files string) (string, error) {
	if files == "" {
		return w.path("none"), nil
	}
	if _, err := os.Stat(files); errors.Is(err, fs.ErrNotExist) {
		return w.path("none"), nil
	}
	if w.owner == nil {
		return files, nil
	}
	if err := w.mirror(files, w.path("files")); err != nil {
		return "", fmt.Errorf("lend plugin resources: %w", err)
	}
	return w.path("files"), nil
}

func (w *workspace) mirror(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if w.files++; w.files > 200_000 {
			return fmt.Errorf("more than %d files", 200_000)
		}
		source, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		real, err := filepath.EvalSymlinks(source)
		if err != nil {
			continue // archives may hold links to what is only on machines
		}
		info, err := os.Stat(real)
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			if err := errors.Join(os.Mkdir(target, 0o750), w.give(target, 0o700)); err != nil {
				return err
			}
			err = w.mirror(real, target)
		case info.Mode().IsRegular():
			err = w.lendFile(real, target, info.Mode().Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *workspace) lendFile(from, to string, mode fs.FileMode) error {
	if mode&0o004 != 0 && os.Link(from, to) == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Close()); err != nil {
		return err
	}
	return w.give(to, mode&0o500|0o400)
}

// remove deletes everything, also what the plugin made unreadable.
func (w *workspace) remove() error {
	err := os.RemoveAll(w.dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(w.dir)
}
