package remote

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"

	"loom/provisioner/resource"
)

// Tree is a set of files that go to a machine in one stream: plain files and
// directories.
type Tree struct {
	entries map[string]treeEntry
	// open are the resources that files are read from.
	open []*resource.Resource
}

type treeEntry struct {
	mode fs.FileMode
	size int64
	open func() (io.ReadCloser, error)
}

// NewTree returns an empty tree, to be closed.
func NewTree() *Tree { return &Tree{entries: map[string]treeEntry{}} }

// Close closes the resources of the tree.
func (t *Tree) Close() {
	for _, r := range t.open {
		_ = r.Close() // they were read only
	}
}

// AddFile adds a file; name is slash-separated and relative.
func (t *Tree) AddFile(name string, mode fs.FileMode, content []byte) {
	t.entries[path.Clean(name)] = treeEntry{mode: mode.Perm(), size: int64(len(content)),
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
}

// AddResources adds the plugin resources of a type below prefix, of which there may
// be none; files is the directory that package resource reads.
func (t *Tree) AddResources(prefix, files, typ string) error {
	names, err := resource.Names(files, typ)
	if err != nil {
		return fmt.Errorf("read plugin resources for upload: %w", err)
	}
	for _, name := range names {
		if err := t.addResource(path.Join(prefix, name), files, typ, name); err != nil {
			return fmt.Errorf("read plugin resource %s/%s for upload: %w", typ, name, err)
		}
	}
	return nil
}

func (t *Tree) addResource(at, files, typ, name string) error {
	r, err := resource.Open(files, typ, name)
	if err != nil {
		return err
	}
	t.open = append(t.open, r)
	if !r.IsDir {
		info, err := r.Stat()
		t.entries[at] = treeEntry{mode: info.Mode, size: info.Size, open: func() (io.ReadCloser, error) { return r.Open() }}
		return err
	}
	t.entries[at] = treeEntry{mode: fs.ModeDir | 0o755}
	return r.Walk(func(f resource.File) error {
		e := treeEntry{mode: f.Mode, size: f.Size}
		if !f.Mode.IsDir() {
			e.open = func() (io.ReadCloser, error) { return r.OpenFile(f.Name) }
		}
		t.entries[path.Join(at, f.Name)] = e
		return nil
	})
}

func (t *Tree) names() []string {
	names := make([]string, 0, len(t.entries))
	for name := range t.entries {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Sum returns the SHA-256 over names, modes and contents, in hex.
func (t *Tree) Sum() (string, error) {
	h := sha256.New()
	for _, name := range t.names() {
		e := t.entries[name]
		fmt.Fprintf(h, "%q %o %d\n", name, e.mode, e.size)
		if e.open != nil {
			if err := copyEntry(h, name, e); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func copyEntry(w io.Writer, name string, e treeEntry) error {
	r, err := e.open()
	if err != nil {
		return fmt.Errorf("read %s for upload: %w", name, err)
	}
	defer r.Close()
	n, err := io.Copy(w, io.LimitReader(r, e.size))
	if err != nil {
		return fmt.Errorf("read %s for upload: %w", name, err)
	}
	if n != e.size {
		return fmt.Errorf("read %s for upload: %d bytes instead of %d", name, n, e.size)
	}
	return nil
}

func (t *Tree) write(w io.Writer, marker string) error {
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zip)
	var list bytes.Buffer
	for _, name := range t.names() {
		e := t.entries[name]
		header := &tar.Header{Name: name, Mode: int64(e.mode.Perm()), Size: e.size, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if e.mode.IsDir() {
			header.Name, header.Typeflag = name+"/", tar.TypeDir
		} else {
			list.WriteString(name + "\n")
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if e.open != nil {
			if err := copyEntry(archive, name, e); err != nil {
				return err
			}
		}
	}
	// Last, so that a broken stream leaves no marker.
	if err := archive.WriteHeader(&tar.Header{Name: marker, Mode: 0o644, Size: int64(list.Len()), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := archive.Write(list.Bytes()); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// TreeOptions say how a tree is put in place.
type TreeOptions struct {
	// Root makes root the owner of the files, through sudo for other users.
	Root bool
	// Replace puts a new directory in the place of the old one. Otherwise only
	// files of the tree uploaded there before are removed first, and what the
	// machine made in the directory itself stays.
	Replace bool
	// Owner, if set, is who owns directory and files afterwards; needs Root.
	Owner string
	// Mode of the directory, 0755 when 0.
	Mode fs.FileMode
	// Prepare is shell text run before anything else, even if the tree is there.
	Prepare string
}

// uploadScript first answers "there" or "send"; only then the archive is sent.
// The marker lists the files of the tree, so that the next tree can remove them.
const treeCheck = `%[3]s
mkdir -p %[1]s && [ -e %[1]s/%[2]s ] && echo there || echo send`

const treeExtract = `umask 022
d=%[1]s; t=$d
if [ %[3]d = 1 ]; then t=$d%[4]s; trap 'rm -rf "$t"' EXIT; else
  cd "$d" && for m in .loom-*; do
    [ -f "$m" ] && while IFS= read -r f; do rm -f -- "$f"; done <"$m"
    rm -f -- "$m"
  done
fi
mkdir -p "$t" && tar -xzof - -C "$t" && chmod %04[6]o "$t" || exit 1
[ -e "$t/%[2]s" ] || { echo "the archive broke off" >&2; exit 1; }
if [ -n %[5]s ]; then chown -R %[5]s "$t" || exit 1; fi
if [ "$t" != "$d" ]; then
  rm -rf "$d%[4]s.old" && { [ ! -e "$d" ] || mv "$d" "$d%[4]s.old"; } && mv "$t" "$d" && rm -rf "$d%[4]s.old"
fi`

// UploadTree makes dir hold the tree, in one compressed stream. Nothing is sent
// when the machine has exactly this tree already, which a marker file
// ".loom-<sha256>" in dir tells; sent says whether it was.
func (c *Conn) UploadTree(ctx context.Context, t *Tree, dir string, o TreeOptions) (sent bool, err error) {
	if !path.IsAbs(dir) || path.Clean(dir) == "/" {
		return false, fail(ErrFailed, nil, "upload to %q: the directory must be absolute", dir)
	}
	sum, err := t.Sum()
	if err != nil {
		return false, err
	}
	dir, marker := path.Clean(dir), ".loom-"+sum
	what := "upload to " + dir
	out, err := c.Run(ctx, what, Command{Root: o.Root, Text: fmt.Sprintf(treeCheck, Quote(dir), marker, o.Prepare)})
	if err != nil {
		return false, err
	}
	if LastLine(out.Stdout) == "there" {
		return false, nil
	}
	mode := o.Mode.Perm()
	if mode == 0 {
		mode = 0o755
	}
	replace := 0
	if o.Replace {
		replace = 1
	}
	reader, writer := io.Pipe()
	local := make(chan error, 1)
	go func() {
		err := t.write(writer, marker)
		local <- err
		_ = writer.CloseWithError(err)
	}()
	_, err = c.Run(ctx, what, Command{Root: o.Root, Stdin: reader,
		Text: fmt.Sprintf(treeExtract, Quote(dir), marker, replace, "."+nonce(), Quote(o.Owner), mode)})
	_ = reader.CloseWithError(io.ErrClosedPipe)
	if trouble := <-local; trouble != nil && (err == nil || trouble != io.ErrClosedPipe) {
		return false, trouble
	}
	return err == nil, err
}
