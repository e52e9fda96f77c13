// Package archive reads the archives that people upload as plugin resources:
// .tar.gz and .zip, told apart by their first bytes. One reading of names, links
// and limits serves the check at the upload and the unpacking on a provisioner.
//
// Archives come from people whom nobody trusts. The package must not put a link on
// disk: a link is stored as a copy of what it names, which has to be a file or
// folder of the same archive. It must not open a path otherwise than through the
// os.Root it is given.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Limits bound an archive as it is unpacked, copies for links included.
type Limits struct {
	Bytes   int64
	Entries int
}

// Usual are the limits of plugin resources.
var Usual = Limits{Bytes: 2 << 30, Entries: 200_000}

// Limits of names, in bytes, and of nesting.
const (
	maxElement = 255
	maxName    = 2048
	maxDepth   = 60
	// maxNames bounds all names of an archive together.
	maxNames = 32 << 20
	// maxDirectory bounds what is read of a zip to learn what it holds, in bytes.
	maxDirectory = 48 << 20
	// perEntry is what a tar may need for an entry besides its content, in bytes.
	perEntry = 4 << 10
	// perZipped is how much is read of a zip for an entry besides its content, in bytes.
	perZipped = 256
)

// Source is an archive. A .tar.gz is read from Stream, a .zip through At, which may
// be nil where only the other is expected.
type Source struct {
	Stream io.Reader
	At     io.ReaderAt
	// Size is what At holds, in bytes.
	Size int64
}

// Bytes returns the source of an archive in memory.
func Bytes(content []byte) Source {
	return Source{Stream: bytes.NewReader(content), At: bytes.NewReader(content), Size: int64(len(content))}
}

// Entry is a file, folder or link of an archive. Name is clean and has no slash at
// its end. Mode holds the kind and whether a file may be executed.
type Entry struct {
	Name string
	Size int64
	Mode fs.FileMode
}

// Refused says why an archive cannot be taken, and which of its entries is the
// reason; Name is "" where it is the archive as a whole.
type Refused struct{ Name, Why string }

// Error names the entry.
func (r *Refused) Error() string {
	if r.Name == "" {
		return r.Why
	}
	return fmt.Sprintf("it holds “%s”, %s", shown(r.Name), r.Why)
}

func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
	if runes := []rune(name); len(runes) > 100 {
		return string(runes[:100]) + "…"
	}
	return name
}

// What is wrong with many archives, as Refused.
var (
	ErrNoArchive error = &Refused{Why: "it is neither a .tar.gz nor a .zip file"}
	ErrDamaged   error = &Refused{Why: "it is broken off or damaged"}
)

// Check reads an archive to its end and returns what is wrong with it as Refused. See,
// if not nil, is given each entry in the order of the archive; an error of it ends the
// reading and is returned. n is how many bytes the archive unpacks to.
func Check(ctx context.Context, src Source, limits Limits, see func(Entry) error) (n int64, err error) {
	r, err := read(src, reader{ctx: ctx, limits: limits, see: see})
	if err != nil {
		return 0, err
	}
	return r.bytes, nil
}

// List returns each entry to see, as Check does, but reads the content of a .zip only
// where it must: it does not say that an archive is good.
func List(ctx context.Context, src Source, limits Limits, see func(Entry) error) error {
	_, err := read(src, reader{ctx: ctx, limits: limits, see: see, listing: true})
	return err
}

// Extract unpacks an archive into a directory, which must be empty. What it leaves
// are folders and regular files only; of modes it keeps whether a file may be
// executed. After an error the directory holds anything and is to be removed.
// Errors are those of Check, and those of the file system.
func Extract(src Source, limits Limits, root *os.Root) error {
	r, err := read(src, reader{ctx: context.Background(), limits: limits, root: root})
	if err != nil {
		return err
	}
	for _, c := range r.copies {
		if c.from == nil {
			err = root.MkdirAll(c.to, 0o755)
		} else {
			err = copyFile(root, c.from.path(), c.to, c.from.executable)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(root *os.Root, from, to string, executable bool) error {
	source, err := root.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	target, err := root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, modeOf(executable))
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

func modeOf(executable bool) fs.FileMode {
	if executable {
		return 0o755
	}
	return 0o644
}

// node is a file, folder or link; a folder has children.
type node struct {
	name       string
	parent     *node
	children   map[string]*node
	link       string // of a link, where it leads
	isLink     bool
	executable bool
	size       int64
}

func (n *node) isDir() bool { return n.children != nil }

func (n *node) path() string {
	var elements []string
	for ; n.parent != nil; n = n.parent {
		elements = append(elements, n.name)
	}
	slices.Reverse(elements)
	return strings.Join(elements, "/")
}

func folder(name string, parent *node) *node {
	return &node{name: name, parent: parent, children: map[string]*node{}}
}

// duplicate is a file or, without from, a folder that a link makes.
type duplicate struct {
	from *node
	to   string
}

// reader builds the tree of an archive while it reads it.
type reader struct {
	ctx     context.Context //nolint:containedctx // of the one call that reads
	limits  Limits
	see     func(Entry) error
	root    *os.Root // nil: nothing is written
	listing bool     // the content of a zip is passed over

	top     *node
	links   []*node
	copies  []duplicate
	bytes   int64
	entries int
	names   int
}

func read(src Source, r reader) (*reader, error) {
	r.top = folder("", nil)
	buffered := bufio.NewReaderSize(src.Stream, 1<<16)
	head, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case string(head) == "\x1f\x8b":
		err = r.tarGz(buffered)
	case string(head) == "PK" && src.At != nil:
		err = r.zip(src)
	default:
		err = ErrNoArchive
	}
	if err != nil {
		return nil, err
	}
	return &r, r.resolve()
}

// source keeps what went wrong where the archive comes from: that is not the
// archive's fault.
type source struct {
	ctx  context.Context //nolint:containedctx // of the one call that reads
	from io.Reader
	err  error
}

// Read implements io.Reader. It ends when nobody waits for what is read.
func (s *source) Read(p []byte) (int, error) {
	if s.err = s.ctx.Err(); s.err != nil {
		return 0, s.err
	}
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (s *source) damaged() error {
	if s.err != nil {
		return s.err
	}
	return ErrDamaged
}

func (r *reader) tarGz(from io.Reader) error {
	src := &source{ctx: r.ctx, from: from}
	unzipped, err := gzip.NewReader(src)
	if err != nil {
		return src.damaged()
	}
	all := &io.LimitedReader{R: unzipped, N: r.limits.Bytes + int64(r.limits.Entries+2)*perEntry}
	archive := tar.NewReader(all)
	for {
		header, err := archive.Next()
		switch {
		case all.N <= 0:
			return r.tooLarge()
		case errors.Is(err, io.EOF):
			// On to the checksum, which tells an archive that was cut off.
			if _, err := io.Copy(io.Discard, all); err != nil {
				return src.damaged()
			}
			if all.N <= 0 {
				return r.tooLarge()
			}
			return nil
		case err != nil:
			return src.damaged()
		}
		// A few bytes would become as much disk as is written in the header.
		for record := range header.PAXRecords {
			if strings.HasPrefix(record, "GNU.sparse.") {
				return &Refused{header.Name, sparse}
			}
		}
		var content error
		open := func() (io.ReadCloser, error) { return io.NopCloser(archive), nil }
		switch header.Typeflag {
		case tar.TypeDir:
			content = r.dir(header.Name)
		case tar.TypeReg:
			content = r.file(header.Name, header.Size, header.Mode&0o111 != 0, open)
		case tar.TypeSymlink:
			content = r.symlink(header.Name, header.Linkname)
		case tar.TypeXGlobalHeader:
		case tar.TypeGNUSparse:
			content = &Refused{header.Name, sparse}
		case tar.TypeLink:
			content = &Refused{header.Name, "a hard link; pack it with tar --hard-dereference"}
		default:
			content = &Refused{header.Name, "which is no file, folder or symbolic link"}
		}
		if content != nil {
			if errors.Is(content, errContent) {
				if all.N <= 0 {
					return r.tooLarge()
				}
				return src.damaged()
			}
			return content
		}
	}
}

const sparse = "a sparse file; pack it without tar --sparse"

// errContent marks content that could not be read.
var errContent = errors.New("the content cannot be read")

// within reads so much of an archive and no more.
type within struct {
	at   io.ReaderAt
	left int64
	err  error // of at, if it is not the archive's fault
}

var errTooMuch = errors.New("more is read of an archive than it should take")

// ReadAt implements io.ReaderAt.
func (w *within) ReadAt(p []byte, at int64) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		w.left = 0
		return 0, errTooMuch
	}
	n, err := w.at.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

func (r *reader) zip(src Source) error {
	at := &within{at: src.At, left: maxDirectory}
	archive, err := zip.NewReader(at, src.Size)
	switch {
	case at.err != nil:
		return at.err
	case errors.Is(err, errTooMuch):
		return r.tooMany()
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrAlgorithm), errors.Is(err, zip.ErrChecksum), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ErrDamaged
	case err != nil:
		return err
	}
	// Each entry is read once: those of an archive that lie over each other would cost
	// the size of the archive each.
	at.left = src.Size + int64(len(archive.File)+1)*perZipped
	for _, entry := range archive.File {
		mode := entry.Mode()
		switch {
		case mode.IsDir():
			err = r.dir(entry.Name)
		case mode&fs.ModeSymlink != 0:
			err = r.zippedLink(entry)
		case mode.IsRegular():
			err = r.file(entry.Name, int64(min(entry.UncompressedSize64, 1<<62)), mode&0o111 != 0, entry.Open) //nolint:gosec // bounded
		default:
			err = &Refused{entry.Name, "which is no file, folder or symbolic link"}
		}
		if errors.Is(err, errContent) {
			switch {
			case at.err != nil:
				return at.err
			case at.left <= 0:
				return &Refused{entry.Name, "which lies over other entries"}
			}
			return &Refused{entry.Name, "which is broken off or damaged"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) zippedLink(entry *zip.File) error {
	content, err := entry.Open()
	if err != nil {
		return errContent
	}
	defer content.Close()
	to, err := io.ReadAll(io.LimitReader(content, maxName+1))
	if err != nil {
		return errContent
	}
	return r.symlink(entry.Name, string(to))
}

func (r *reader) tooLarge() error {
	return &Refused{Why: fmt.Sprintf("it unpacks to more than %d bytes", r.limits.Bytes)}
}

func (r *reader) tooMany() error {
	return &Refused{Why: fmt.Sprintf("it has more than %d entries", r.limits.Entries)}
}

// place checks a name, counts the entry and returns the elements of the name; none
// for the archive itself and for what is left out.
func (r *reader) place(name string) ([]string, error) {
	if err := r.count(len(name)); err != nil {
		return nil, err
	}
	switch {
	case name == "":
		return nil, &Refused{Why: "it holds an entry without a name"}
	case len(name) > maxName:
		return nil, &Refused{name, fmt.Sprintf("a name of more than %d bytes", maxName)}
	case path.IsAbs(name):
		return nil, &Refused{name, "an absolute name, which leads outside of it"}
	case strings.ContainsRune(name, '\\') || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return nil, &Refused{name, "a name with a backslash or a control character"}
	}
	var elements []string
	for _, element := range strings.Split(name, "/") {
		switch {
		case element == "" || element == ".":
			continue
		case element == "..":
			return nil, &Refused{name, "a name with “..”, which leads outside of it"}
		case len(element) > maxElement:
			return nil, &Refused{name, fmt.Sprintf("a name with a part of more than %d bytes", maxElement)}
		}
		elements = append(elements, element)
	}
	if len(elements) > maxDepth {
		return nil, &Refused{name, fmt.Sprintf("which lies more than %d folders deep", maxDepth)}
	}
	// Files of the packing system and of version control, at the top only.
	if len(elements) > 0 && strings.HasPrefix(elements[0], ".") {
		return nil, nil
	}
	return elements, nil
}

func (r *reader) count(name int) error {
	if r.entries++; r.entries > r.limits.Entries {
		return r.tooMany()
	}
	return r.countNames(name)
}

func (r *reader) countNames(bytes int) error {
	if r.names += bytes; r.names > maxNames {
		return &Refused{Why: fmt.Sprintf("its names have more than %d bytes in total", maxNames)}
	}
	return nil
}

// folderOf returns the folder of the elements, made where it is missing.
func (r *reader) folderOf(name string, elements []string) (*node, error) {
	at := r.top
	for _, element := range elements {
		next, there := at.children[element]
		switch {
		case !there:
			if err := r.count(len(element)); err != nil {
				return nil, err
			}
			next = folder(element, at)
			at.children[element] = next
		case next.isLink:
			return nil, &Refused{name, fmt.Sprintf("which lies below “%s”, a link", shown(next.path()))}
		case !next.isDir():
			return nil, &Refused{name, fmt.Sprintf("which lies below “%s”, a file", shown(next.path()))}
		}
		at = next
	}
	return at, nil
}

func (r *reader) dir(name string) error {
	elements, err := r.place(name)
	if err != nil || len(elements) == 0 {
		return err
	}
	if _, err := r.folderOf(name, elements); err != nil {
		return err
	}
	clean := strings.Join(elements, "/")
	if r.root != nil {
		if err := r.root.MkdirAll(clean, 0o755); err != nil {
			return err
		}
	}
	return r.tell(Entry{Name: clean, Mode: fs.ModeDir | 0o755})
}

func (r *reader) tell(e Entry) error {
	if r.see == nil {
		return nil
	}
	return r.see(e)
}

func (r *reader) file(name string, size int64, executable bool, open func() (io.ReadCloser, error)) error {
	elements, err := r.place(name)
	if err != nil || len(elements) == 0 {
		return err
	}
	last := elements[len(elements)-1]
	in, err := r.folderOf(name, elements[:len(elements)-1])
	if err != nil {
		return err
	}
	if there := in.children[last]; there != nil && (there.isDir() || there.isLink) {
		return &Refused{name, "twice, as a file and as something else"}
	}
	clean := strings.Join(elements, "/")
	if err := r.tell(Entry{Name: clean, Size: size, Mode: modeOf(executable)}); err != nil {
		return err
	}
	n := size
	if !r.listing {
		if n, err = r.content(clean, executable, open); err != nil {
			return err
		}
	}
	in.children[last] = &node{name: last, parent: in, size: n, executable: executable}
	return nil
}

// content reads a file, and writes it where it is unpacked. Of two files of one
// name the later one stays, as tar has it.
func (r *reader) content(name string, executable bool, open func() (io.ReadCloser, error)) (int64, error) {
	content, err := open()
	if err != nil {
		return 0, errContent
	}
	defer content.Close()
	var to io.Writer = io.Discard
	if r.root != nil {
		if err := r.root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return 0, err
		}
		if err := r.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		file, err := r.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, modeOf(executable))
		if err != nil {
			return 0, err
		}
		defer file.Close()
		to = file
	}
	left := r.limits.Bytes - r.bytes
	from := &source{ctx: r.ctx, from: content}
	n, err := io.Copy(to, io.LimitReader(from, left+1))
	r.bytes += n
	switch {
	case r.ctx.Err() != nil:
		return 0, r.ctx.Err()
	case from.err != nil:
		return 0, errContent
	case err != nil:
		return 0, err
	case n > left:
		return 0, r.tooLarge()
	}
	return n, nil
}

// symlink is remembered: where it leads is judged when everything is there.
func (r *reader) symlink(name, to string) error {
	elements, err := r.place(name)
	if err != nil || len(elements) == 0 {
		return err
	}
	if len(to) > maxName {
		return &Refused{name, "a link to a name that is too long"}
	}
	if err := r.countNames(len(to)); err != nil {
		return err
	}
	last := elements[len(elements)-1]
	in, err := r.folderOf(name, elements[:len(elements)-1])
	if err != nil {
		return err
	}
	if in.children[last] != nil {
		return &Refused{name, "twice, as a link and as something else"}
	}
	link := &node{name: last, parent: in, link: to, isLink: true}
	in.children[last] = link
	r.links = append(r.links, link)
	return r.tell(Entry{Name: strings.Join(elements, "/"), Mode: fs.ModeSymlink | 0o777})
}

// resource returns the folder that becomes the resource: a single folder at the top,
// whatever its name, is not part of it.
func (r *reader) resource() *node {
	if len(r.top.children) == 1 {
		for _, only := range r.top.children {
			if only.isDir() {
				return only
			}
		}
	}
	return r.top
}

// resolve follows the links in the tree, where nothing can be exchanged, and notes
// what is to be copied for them.
func (r *reader) resolve() error {
	if len(r.links) == 0 {
		return nil
	}
	resource := r.resource()
	for _, link := range r.links {
		if err := r.duplicate(resource, link, link.path(), nil); err != nil {
			return err
		}
	}
	return nil
}

// remedy is how to pack what links refer to.
const remedy = "; pack it with tar -h, which stores copies"

// target returns the file or folder that a link names.
func (r *reader) target(resource, link *node) (*node, error) {
	refuse := func(why string) error {
		return &Refused{link.path(), fmt.Sprintf("a link to “%s”, %s%s", shown(link.link), why, remedy)}
	}
	if link.link == "" || path.IsAbs(link.link) {
		return nil, refuse("which is no place inside the resource")
	}
	at := link.parent
	for _, element := range strings.Split(link.link, "/") {
		if !at.isDir() {
			return nil, refuse("which is not there")
		}
		switch element {
		case "", ".":
			continue
		case "..":
			if at == resource || at.parent == nil {
				return nil, refuse("which leads outside of the resource")
			}
			at = at.parent
			continue
		}
		next := at.children[element]
		switch {
		case next == nil:
			return nil, refuse("which is not there")
		case next.isLink:
			return nil, refuse("which passes through another link")
		}
		at = next
	}
	return at, nil
}

// duplicate notes what a link stands for, to be copied to a name. Within are the
// links that are being followed.
func (r *reader) duplicate(resource, link *node, to string, within []*node) error {
	if slices.Contains(within, link) {
		return &Refused{link.path(), fmt.Sprintf("a link to “%s”, which leads into itself", shown(link.link))}
	}
	target, err := r.target(resource, link)
	if err != nil {
		return err
	}
	return r.duplicateNode(resource, link, target, to, append(slices.Clip(within), link))
}

func (r *reader) duplicateNode(resource, link, from *node, to string, within []*node) error {
	if len(to) > maxName || strings.Count(to, "/") >= maxDepth {
		return &Refused{link.path(), fmt.Sprintf("a link to “%s”, which is nested too deep", shown(link.link))}
	}
	if err := r.count(len(to)); err != nil {
		return err
	}
	switch {
	case from.isLink:
		return r.duplicate(resource, from, to, within)
	case !from.isDir():
		if r.bytes += from.size; r.bytes > r.limits.Bytes {
			return r.tooLarge()
		}
		r.copies = append(r.copies, duplicate{from: from, to: to})
		return nil
	}
	r.copies = append(r.copies, duplicate{to: to})
	for _, name := range slices.Sorted(maps.Keys(from.children)) {
		if err := r.duplicateNode(resource, link, from.children[name], to+"/"+name, within); err != nil {
			return err
		}
	}
	return nil
}
