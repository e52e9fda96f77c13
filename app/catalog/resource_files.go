package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"loom/app/archive"
	"loom/app/loom"
)

// oddNoArchive is said of what is not an archive at all.
const oddNoArchive = "This is not an archive. Upload a .tar.gz or .zip file."

// archiveList collects what an archive holds.
type archiveList struct {
	found loom.ResourceContent
	// tops are the entries at its top; true for those that are folders.
	tops map[string]bool
	// short ends the list after maxListed entries.
	short bool
}

func newArchiveList() *archiveList { return &archiveList{tops: map[string]bool{}} }

// errListed ends the reading of an archive whose list is long enough.
var errListed = errors.New("enough entries are listed")

// add takes an entry of an archive.
func (l *archiveList) add(e archive.Entry) error {
	top, below, _ := strings.Cut(e.Name, "/")
	l.tops[top] = l.tops[top] || below != "" || e.Mode.IsDir()
	if len(l.found.Files) == maxListed {
		l.found.More = true
		if l.short {
			return errListed
		}
		return nil
	}
	name := e.Name
	if e.Mode.IsDir() {
		name += "/"
	}
	l.found.Files = append(l.found.Files, loom.ArchiveFile{Name: strings.ToValidUTF8(name, "\uFFFD"), Size: e.Size, Mode: e.Mode.String()})
	return nil
}

// end takes the error of reading: what is wrong with the archive, or that it was not
// read to its end. Other errors are returned.
func (l *archiveList) end(err error) error {
	var refused *archive.Refused
	switch {
	case errors.Is(err, errListed):
	case errors.Is(err, archive.ErrNoArchive):
		l.found.Odd = oddNoArchive
	case errors.As(err, &refused):
		l.found.Odd = "The archive cannot be used: " + refused.Error() + "."
	case err != nil:
		return err
	}
	return nil
}

// maxTops is how many entries at the top of an archive are named.
const maxTops = 4

// folder says what is odd about the archive as a whole: it should hold one folder at
// its top, which becomes the resource.
func (l *archiveList) folder() string {
	names := slices.Sorted(maps.Keys(l.tops))
	for i, name := range names {
		names[i] = "“" + shownPath(name) + "”"
	}
	const remedy = " Pack the folder itself: tar -czf NAME.tar.gz FOLDER."
	switch n := len(names); {
	case n == 0:
		return "The archive is empty."
	case n > maxTops:
		return fmt.Sprintf("The archive should hold one folder at its top; this one holds %s and %d more entries there.", strings.Join(names[:maxTops], ", "), n-maxTops) + remedy
	case n > 1:
		return fmt.Sprintf("The archive should hold one folder at its top; this one holds %s there.", strings.Join(names, ", ")) + remedy
	}
	for _, folder := range l.tops {
		if !folder {
			return fmt.Sprintf("The archive should hold one folder at its top; this one holds the file %s there.", names[0]) + remedy
		}
	}
	return ""
}

// lookThrough reads an archive to its end and says what is odd about it: what
// provisioners refuse, and anything but one folder at its top. n is how many bytes it
// unpacks to.
func lookThrough(ctx context.Context, src archive.Source, limits archive.Limits) (odd, loose string, n int64, err error) {
	l := newArchiveList()
	n, err = archive.Check(ctx, src, limits, l.add)
	if err := l.end(err); err != nil {
		return "", "", 0, err
	}
	return l.found.Odd, l.folder(), n, nil
}

// maxListing bounds how much of an archive is read for its list, in bytes.
const maxListing = 256 << 20

// listObject lists a stored archive.
func (c *Catalog) listObject(ctx context.Context, r loom.Resource, content io.Reader) (loom.ResourceContent, error) {
	l := newArchiveList()
	l.short = true
	src := archive.Source{Stream: content, At: &objectAt{ctx: ctx, c: c, key: r.Object, size: r.Size}, Size: r.Size}
	if err := l.end(archive.List(ctx, src, archive.Limits{Bytes: maxListing, Entries: archive.Usual.Entries}, l.add)); err != nil {
		return loom.ResourceContent{}, err
	}
	if l.found.Odd == "" && !l.found.More {
		l.found.Odd = l.folder()
	}
	return l.found, nil
}

// objectAt reads anywhere in an object of the bucket, for one reader: a zip has its list at
// the end. It reads ahead, for each read of the bucket may be a request.
type objectAt struct {
	ctx  context.Context //nolint:containedctx // of the one call that reads
	c    *Catalog
	key  string
	size int64

	ahead []byte
	from  int64 // where ahead lies
}

// readAhead is how much is read of the bucket at a time, in bytes.
const readAhead = 1 << 20

// ReadAt implements io.ReaderAt.
func (o *objectAt) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		next := at + int64(n)
		if next >= o.size {
			return n, io.EOF
		}
		if next < o.from || next >= o.from+int64(len(o.ahead)) {
			if err := o.read(next); err != nil {
				return n, err
			}
		}
		n += copy(p[n:], o.ahead[next-o.from:])
	}
	return n, nil
}

func (o *objectAt) read(at int64) error {
	length := min(readAhead, o.size-at)
	r, err := o.c.openObject(o.ctx, o.key, at, length)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // read
	ahead := make([]byte, length)
	if _, err := io.ReadFull(r, ahead); err != nil {
		return err
	}
	o.ahead, o.from = ahead, at
	return nil
}

// checkArchive refuses an archive in the bucket that provisioners could not unpack,
// or, where folder is set, that holds anything but one folder, and takes it out of the
// bucket again. The error is Invalid and names the entry.
func (c *Catalog) checkArchive(ctx context.Context, tenant loom.TenantID, r loom.Resource, folder bool) error {
	if !c.checking.Take(ctx, tenant) {
		return ctx.Err()
	}
	defer c.checking.Give(tenant)
	content, err := c.Open(ctx, r)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // read
	src := archive.Source{Stream: content, At: &objectAt{ctx: ctx, c: c, key: r.Object, size: r.Size}, Size: r.Size}
	if r.Sealed { // the bucket has it sealed; it is small
		plain, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		src = archive.Bytes(plain)
	}
	odd, loose, _, err := lookThrough(ctx, src, archive.Usual)
	if err != nil {
		return err
	}
	if odd == "" && folder {
		odd = loose
	}
	if odd == "" {
		return nil
	}
	_ = c.bucket.Delete(ctx, r.Object) // what is left is swept: no row knows it
	return loom.InvalidFields([]loom.FieldError{{Field: "file", Message: odd}})
}

// nested looks through archives that lie in another one.
type nested struct {
	c      *Catalog
	ctx    context.Context //nolint:containedctx // of the one call that reads
	tenant loom.TenantID
	// left is how much all of them may unpack to, in bytes.
	left int64
}

// odd says what is odd about an archive. It is put aside before anything is read of it: a
// zip has its list at the end, and who sends slowly is not to hold a place of others.
func (n *nested) odd(content io.Reader) (odd, loose string, err error) {
	aside, err := os.CreateTemp("", "loom-archive-")
	if err != nil {
		return "", "", err
	}
	defer aside.Close()
	if err := os.Remove(aside.Name()); err != nil {
		return "", "", err
	}
	size, err := io.Copy(aside, content)
	if err != nil {
		return "", "", err
	}
	if !n.c.checking.Take(n.ctx, n.tenant) {
		return "", "", n.ctx.Err()
	}
	defer n.c.checking.Give(n.tenant)
	limits := archive.Usual
	limits.Bytes = min(limits.Bytes, n.left)
	odd, loose, unpacked, err := lookThrough(n.ctx, archive.Source{Stream: io.NewSectionReader(aside, 0, size), At: aside, Size: size}, limits)
	n.left -= unpacked
	return odd, loose, err
}
