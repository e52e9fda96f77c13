package external

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"loom/provisioner/confine"
	"loom/provisioner/resource"
)

// workspace is the private directory of one call:
//
//	<dir>/tmp    LOOM_SCRATCH, the plugin's
//	<dir>/lent   SSH configuration, agent socket: written by the host only
//	<dir>/files  copies of the resources
//	<dir>/none   the current directory of plugins without resources
type workspace struct {
	dir string
	// owner is nil unless plugins run as another user.
	owner *confine.User
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

// lend returns a file of the host to the plugin, to read only.
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

// resources returns the current directory of the plugin: a copy of the tenant's files
// of its type. Where they are nobody but the provisioner may read them, and what lies
// there must not be changed. Files that everybody may read are linked instead.
func (w *workspace) resources(files string) (string, error) {
	types, err := resource.Types(files)
	if err != nil || len(types) == 0 {
		return w.path("none"), err
	}
	for _, typ := range types {
		if err := w.lendType(files, typ); err != nil {
			return "", fmt.Errorf("lend plugin resources: %w", err)
		}
	}
	return w.path("files"), nil
}

func (w *workspace) lendType(files, typ string) error {
	if err := w.lendFolder(w.path("files", typ)); err != nil {
		return err
	}
	names, err := resource.Names(files, typ)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.lendResource(files, typ, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *workspace) lendResource(files, typ, name string) error {
	r, err := resource.Open(files, typ, name)
	if errors.Is(err, resource.ErrNotThere) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	to := w.path("files", typ, name)
	if !r.IsDir {
		file, err := r.Open()
		if err != nil {
			return err
		}
		return w.lendFile(file, to)
	}
	if err := w.lendFolder(to); err != nil {
		return err
	}
	return r.Walk(func(f resource.File) error {
		if w.files++; w.files > maxLent {
			return fmt.Errorf("more than %d files", maxLent)
		}
		at := filepath.Join(to, f.Name)
		if f.Mode.IsDir() {
			return w.lendFolder(at)
		}
		file, err := r.OpenFile(f.Name)
		if err != nil {
			return err
		}
		return w.lendFile(file, at)
	})
}

// maxLent is how many files of resources a plugin is lent.
const maxLent = 200_000

func (w *workspace) lendFolder(at string) error {
	return errors.Join(os.Mkdir(at, 0o750), w.give(at, 0o700))
}

// lendFile closes the source.
func (w *workspace) lendFile(source *os.File, to string) error {
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	// By the open file: its name could mean another one by now.
	if mode&0o004 != 0 && unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", source.Fd()), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW) == nil {
		return nil
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Close(), os.Chmod(to, mode)); err != nil {
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
	root, err := os.OpenRoot(w.dir) // what the plugin left may still change, and lead elsewhere
	if err != nil {
		return err
	}
	_ = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
	_ = root.Close()
	return os.RemoveAll(w.dir)
}
