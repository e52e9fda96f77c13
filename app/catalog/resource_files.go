package catalog

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"loom/app/loom"
)

// Why an archive cannot be used.
const (
	oddNoArchive = "This is no archive: provisioners expect a gzipped tar (.tar.gz) or a .zip."
	oddBroken    = "The archive is broken off or damaged."
)

// archiveList collects what an archive holds.
type archiveList struct {
	found ResourceContent
	// tops are the entries at its top; true for those that are folders.
	tops map[string]bool
}

// add takes an entry of an archive. It says why provisioners refuse such an entry, ""
// where they do not.
func (l *archiveList) add(name string, size int64, mode fs.FileMode) (refused string) {
	clean := path.Clean(strings.TrimPrefix(name, "./"))
	if clean == "." {
		return ""
	}
	shown := shownPath(clean)
	switch {
	case path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../"):
		return fmt.Sprintf("The archive holds “%s”, which leads outside of it; provisioners refuse that.", shown)
	case mode&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0:
		return fmt.Sprintf("The archive holds “%s”, which is no file, folder or link; provisioners refuse that.", shown)
	}
	top, below, _ := strings.Cut(clean, "/")
	l.tops[top] = l.tops[top] || below != "" || mode.IsDir()
	if len(l.found.Files) == maxListed {
		l.found.More = true
		return ""
	}
	if mode.IsDir() {
		clean += "/"
	}
	l.found.Files = append(l.found.Files, ArchiveFile{Name: strings.ToValidUTF8(clean, "\uFFFD"), Size: size, Mode: mode.String()})
	return ""
}

// maxTops is how many entries at the top of an archive are named.
const maxTops = 4

// done says what is odd about the archive as a whole: it should hold one folder at its
// top, which becomes the resource.
func (l *archiveList) done() ResourceContent {
	names := slices.Sorted(maps.Keys(l.tops))
	for i, name := range names {
		names[i] = "“" + shownPath(name) + "”"
	}
	const remedy = " Pack the folder itself: tar -czf NAME.tar.gz FOLDER."
	switch n := len(names); {
	case n == 0:
		l.found.Odd = "The archive is empty."
	case n > maxTops:
		l.found.Odd = fmt.Sprintf("The archive should hold one folder at its top; this one holds %s and %d more entries there.", strings.Join(names[:maxTops], ", "), n-maxTops) + remedy
	case n > 1:
		l.found.Odd = fmt.Sprintf("The archive should hold one folder at its top; this one holds %s there.", strings.Join(names, ", ")) + remedy
	default:
		for _, folder := range l.tops {
			if !folder {
				l.found.Odd = fmt.Sprintf("The archive should hold one folder at its top; this one holds the file %s there.", names[0]) + remedy
			}
		}
	}
	return l.found
}

// listArchive lists a gzipped tar, and says what is odd about it. A zip cannot be read
// as a stream: nothing is said of it.
func listArchive(r io.Reader) ResourceContent {
	l := archiveList{tops: map[string]bool{}}
	buffered := bufio.NewReader(r)
	if head, err := buffered.Peek(4); err == nil && string(head) == zipMagic {
		return l.found
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		l.found.Odd = oddNoArchive
		return l.found
	}
	reader := tar.NewReader(io.LimitReader(unpacked, maxUnpacked))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return l.done()
		}
		if err != nil {
			l.found.Odd = oddBroken
			return l.found
		}
		if refused := l.add(header.Name, header.Size, header.FileInfo().Mode()); refused != "" {
			l.found.Odd = refused
			return l.found
		}
	}
}

// zipMagic begins every zip that holds a file.
const zipMagic = "PK\x03\x04"

// listObject lists a stored archive of either format.
func (c *Catalog) listObject(ctx context.Context, r loom.Resource, content io.Reader) ResourceContent {
	buffered := bufio.NewReader(content)
	if head, err := buffered.Peek(4); err != nil || string(head) != zipMagic {
		return listArchive(buffered)
	}
	l := archiveList{tops: map[string]bool{}}
	files, err := zip.NewReader(&objectAt{ctx: ctx, c: c, key: r.Object}, r.Size)
	if err != nil {
		l.found.Odd = oddBroken
		return l.found
	}
	for _, f := range files.File {
		if refused := l.add(f.Name, int64(min(f.UncompressedSize64, 1<<62)), f.Mode()); refused != "" { //nolint:gosec // bounded
			l.found.Odd = refused
			return l.found
		}
	}
	return l.done()
}

// objectAt reads anywhere in an object of the bucket: a zip has its list at the end.
type objectAt struct {
	ctx context.Context //nolint:containedctx // of the one call that reads
	c   *Catalog
	key string
}

// ReadAt implements io.ReaderAt.
func (o *objectAt) ReadAt(p []byte, at int64) (int, error) {
	r, err := o.c.bucket.NewRangeReader(o.ctx, o.key, at, int64(len(p)), nil)
	if err != nil {
		return 0, err
	}
	defer r.Close() //nolint:errcheck // read
	n, err := io.ReadFull(r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// checkArchive refuses a stored archive that is not as it should be, and takes it out of
// the bucket again.
func (c *Catalog) checkArchive(ctx context.Context, r loom.Resource) error {
	content, err := c.Open(ctx, r)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // read
	odd := c.listObject(ctx, r, content).Odd
	if odd == "" {
		return nil
	}
	_ = c.bucket.Delete(ctx, r.Object) // what is left is swept: no row knows it
	return loom.InvalidFields([]loom.FieldError{{Field: "file", Message: odd}})
}
