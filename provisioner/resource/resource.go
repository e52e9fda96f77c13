// Package resource reads the plugin resources of a tenant where a provisioner has laid
// them out: <dir>/<type>/<name>, a file or the folder of an archive.
//
// Their content comes from people whom nobody trusts. Everything below a resource is
// opened through an os.Root of that resource, and the package must stay the only one
// that opens it: packages that read resources do not import “os” (app/arch_test.go).
package resource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

// ErrNotThere is the error of a resource that the tenant does not have.
var ErrNotThere = errors.New("there is no such plugin resource")

// Resource is a resource that is open.
type Resource struct {
	// Type and Name are those it was opened by; IsDir tells an archive's folder.
	Type, Name string
	IsDir      bool

	// root is the folder of an archive, or that which the file lies in.
	root *os.Root
	file string
}

// Open opens a resource, to be closed. The error is ErrNotThere also where dir is ""
// and where type or name cannot be the name of a file.
func Open(dir, typ, name string) (*Resource, error) {
	if dir == "" || !plain(typ) || !plain(name) {
		return nil, ErrNotThere
	}
	// The last element may be a link that the provisioner made, to the version.
	at := filepath.Join(dir, typ, name)
	if to, err := os.Readlink(at); err == nil {
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		at = to
	}
	root, err := os.OpenRoot(filepath.Dir(at))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotThere
	}
	if err != nil {
		return nil, err
	}
	base := filepath.Base(at)
	info, err := root.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = ErrNotThere
	case err != nil:
	case info.Mode().IsRegular():
		return &Resource{Type: typ, Name: name, root: root, file: base}, nil
	case info.IsDir():
		inner, err := root.OpenRoot(base)
		return &Resource{Type: typ, Name: name, IsDir: true, root: inner}, errors.Join(err, root.Close())
	default:
		err = fmt.Errorf("the plugin resource %s/%s is neither a file nor a folder", typ, name)
	}
	return nil, errors.Join(err, root.Close())
}

func plain(name string) bool {
	return name != "" && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "/\\\x00")
}

// Close closes it. Files opened from it stay open.
func (r *Resource) Close() error { return r.root.Close() }

// Open opens the file that the resource is. The error wraps fs.ErrInvalid for a folder.
func (r *Resource) Open() (*os.File, error) {
	if r.IsDir {
		return nil, fmt.Errorf("the plugin resource %s/%s is a folder: %w", r.Type, r.Name, fs.ErrInvalid)
	}
	return open(r.root, r.file)
}

// open opens a regular file, and nothing that waits or acts when it is opened.
func open(root *os.Root, name string) (*os.File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: %w", name, fs.ErrInvalid)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// File is a file or folder of a resource; Name is slash-separated and relative to it.
type File struct {
	Name string
	Mode fs.FileMode
	Size int64
}

// maxDepth stops a link that leads into itself.
const maxDepth = 64

// Walk returns the files and folders of an archive's folder to see, a folder before what
// it holds. Links, which older releases left on disk, are followed inside the resource
// only. The error of see ends the walk and is returned.
func (r *Resource) Walk(see func(File) error) error {
	if !r.IsDir {
		return nil
	}
	return r.walk(".", 0, see)
}

func (r *Resource) walk(dir string, depth int, see func(File) error) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: folders are nested more than %d deep", path.Join(r.Type, r.Name, dir), maxDepth)
	}
	names, err := names(r.root, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		at := path.Join(dir, name)
		info, err := r.root.Stat(at)
		if err != nil {
			return fmt.Errorf("read the plugin resource %s: %w", path.Join(r.Type, r.Name, at), err)
		}
		switch {
		case info.IsDir():
			if err := see(File{Name: at, Mode: fs.ModeDir | 0o755}); err != nil {
				return err
			}
			if err := r.walk(at, depth+1, see); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			if err := see(File{Name: at, Mode: info.Mode().Perm(), Size: info.Size()}); err != nil {
				return err
			}
		}
	}
	return nil
}

func names(root *os.Root, dir string) ([]string, error) {
	folder, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	sort.Strings(names)
	return names, err
}

// OpenFile opens a regular file that Walk gave.
func (r *Resource) OpenFile(name string) (*os.File, error) { return open(r.root, name) }

// Stat returns the file that the resource is.
func (r *Resource) Stat() (File, error) {
	file, err := r.Open()
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return File{}, err
	}
	return File{Name: r.Name, Mode: info.Mode().Perm(), Size: info.Size()}, nil
}

// Read returns the content of a resource that is a file of at most limit bytes.
// Errors: ErrNotThere, and one that says which limit it exceeds.
func Read(dir, typ, name string, limit int64) ([]byte, error) {
	r, err := Open(dir, typ, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	file, err := r.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("the plugin resource %s/%s has more than %d bytes", typ, name, limit)
	}
	return content, err
}

// Types returns the types of which there are resources, sorted.
func Types(dir string) ([]string, error) { return list(dir) }

// Names returns the names of the resources of a type, sorted; none where there is no
// such type.
func Names(dir, typ string) ([]string, error) {
	if !plain(typ) {
		return nil, nil
	}
	return list(filepath.Join(dir, typ))
}

func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if plain(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, err
}
